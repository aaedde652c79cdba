"""Run a program again with one thing changed at a time, and say which removes its growth.

  leakscope bisect -- train.py --epochs 1         every factor that applies here
  leakscope bisect --seconds 60 -- train.py       each run is ended after a minute
  leakscope bisect --only arenas -- train.py      one factor

The same command goes on where it was stopped. The exit code is 0 if there is an answer, 3 if the
evidence does not decide.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leakscope import errors, text
from leakscope.bisect.conclude import conclude
from leakscope.bisect.factors import most_runs
from leakscope.bisect.session import Session
from leakscope.bisect.state import State, is_same, read_state, write_state
from leakscope.bisect.trial import RunFailedError
from leakscope.cli.output import FORMATS, format_of
from leakscope.cli.run import STEPS_FROM, command_for
from leakscope.model import BISECTION_SCHEMA, Bisection, Cause
from leakscope.record.secrets import hide_in_command
from leakscope.render.bisection import render_bisection
from leakscope.render.style import Style

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.usage = "leakscope bisect [options] [--] script.py | -m module | command  [arguments …]"
    parser.add_argument("--out", metavar="DIR", help="folder of the runs and of what is done")
    parser.add_argument("--seconds", metavar="N", help="end each run after so long")
    parser.add_argument(
        "--only", metavar="FACTOR", action="append", default=[], help="try these factors only"
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help=f"also write the answer here; format by ending ({', '.join(sorted(FORMATS))})",
    )
    parser.add_argument(
        "--steps-from",
        choices=STEPS_FROM,
        default="auto",
        help="what counts as a step (default: the strongest source that speaks)",
    )


TAKE_A_VALUE = {"--out", "--seconds", "--only", "--report", "--steps-from"}


def run(options: argparse.Namespace) -> int:
    for path in options.report:
        format_of(path)
    seconds = _seconds(options.seconds)
    command = command_for(options)
    shown = hide_in_command(command, os.environ)
    folder = options.out or _folder_for(shown)
    settings = {
        "steps_from": options.steps_from,
        "seconds": options.seconds or "",
        "only": " ".join(sorted(options.only)),
        "directory": os.getcwd(),
    }
    state = _open(folder, shown, settings, is_fresh=options.fresh)
    session = Session(
        state,
        folder,
        command,
        os.environ,
        steps_from=options.steps_from,
        seconds=seconds,
        only=options.only,
    )
    _go_on(session, folder, seconds)
    bisection = conclude(state)
    _write(bisection, options.report)
    sys.stdout.write(render_bisection(bisection, "terminal", Style.of(sys.stdout)))
    print(f"  {'recordings':<12}{text.clean(folder)}")
    return 3 if bisection.cause is Cause.UNKNOWN else 0


def _open(
    folder: str, command: tuple[str, ...], settings: dict[str, str], *, is_fresh: bool
) -> State:
    state = read_state(folder)
    if state is not None and is_fresh:
        shutil.rmtree(folder, ignore_errors=True)
        state = None
    if state is not None and not is_same(state, command, settings):
        raise errors.other_bisect(folder)
    if state is None:
        state = State(BISECTION_SCHEMA, command, settings)
        write_state(folder, state)
    elif state.trials:
        done = "all of it" if state.is_done else text.plural(len(state.trials), "run")
        print(f"leakscope: {done} done before, in {text.clean(folder)}", file=sys.stderr)
    return state


def _go_on(session: Session, folder: str, seconds: float | None) -> None:
    if session.state.is_done:
        return
    if not session.state.trials:
        most = f", each {text.duration(seconds)} at most" if seconds is not None else ""
        print(
            f"leakscope: up to {most_runs()} runs of the program{most}; the first says how long "
            "one takes",
            file=sys.stderr,
        )
    try:
        with _progress(session) as tell:
            session.run(tell)
    except RunFailedError as failed:
        raise errors.run_failed(str(failed)) from None
    except KeyboardInterrupt:
        print("leakscope: stopped; the same command goes on from here", file=sys.stderr)
        raise


@contextmanager
def _progress(session: Session) -> Iterator[_Told]:
    """A bar where somebody looks at it, a line for each run where nobody does."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(session)
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=console,
        transient=True,
    ) as progress:
        yield _Bar(session, progress, progress.add_task("", left=""))


class _Lines:
    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, title: str, done: int, planned: int) -> None:
        print(
            f"leakscope: run {done + 1} of {planned}: {title}{_left(self._session)}",
            file=sys.stderr,
            flush=True,
        )


class _Bar:
    def __init__(self, session: Session, progress: Progress, task: TaskID) -> None:
        self._session = session
        self._progress = progress
        self._task = task

    def __call__(self, title: str, done: int, planned: int) -> None:
        self._progress.update(
            self._task,
            description=title,
            completed=done,
            total=planned,
            left=_left(self._session).lstrip("; "),
        )


_Told = _Lines | _Bar


def _left(session: Session) -> str:
    left = session.left_seconds()
    return f"; about {text.duration(round(left))} left" if left is not None else ""


def _folder_for(command: tuple[str, ...]) -> str:
    """The same for the same command, so that it goes on when it is typed again."""
    script = next((word for word in command[1:] if not word.startswith("-")), command[0])
    stem = os.path.splitext(os.path.basename(script.rstrip("/")))[0] or "run"
    words = "\0".join(command).encode("utf-8", "backslashreplace")
    return os.path.join(".leakscope", f"bisect-{stem}-{hashlib.sha256(words).hexdigest()[:6]}")


def _seconds(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e7:
        wanted = "a number of seconds above 0"
        raise errors.bad_option("--seconds", value, wanted, "--seconds 60")
    return seconds


def _write(bisection: Bisection, paths: list[str]) -> None:
    for path in paths:
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(render_bisection(bisection, format_of(path)))
        except OSError as error:
            raise errors.cannot_write(path, error.strerror or str(error)) from None
