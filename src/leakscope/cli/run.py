"""Watch a program, then report.

  leakscope run train.py --epochs 3        a script, under this Python
  leakscope run -m package.train           a module
  leakscope run torchrun x.py              any command; the Pythons below it are followed

Options for leakscope come before the program; everything after it is the program's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Collection, Sequence
from contextlib import nullcontext

from leakscope import errors, text
from leakscope.api import new_directory, write_header
from leakscope.cli.code_host import tell_host
from leakscope.cli.live import live_view
from leakscope.cli.output import FORMATS, format_of, show, write_report
from leakscope.inject import environment_for
from leakscope.model import Outcome, Picture, Report
from leakscope.render import draws
from leakscope.supervise import Exited, Supervisor

STEPS_FROM = ("auto", "optimizer", "batch", "call", "forward", "dataloader", "time")


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.usage = "leakscope run [options] [--] script.py | -m module | command  [arguments …]"
    parser.add_argument("--out", metavar="DIR", help="folder of the recording")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help=f"also write the report here; format by ending ({', '.join(sorted(FORMATS))})",
    )
    parser.add_argument(
        "--live", action="store_true", help="show the live view while the program runs"
    )
    parser.add_argument("--quiet", action="store_true", help="one line instead of the report")
    parser.add_argument(
        "--steps-from",
        choices=STEPS_FROM,
        default="auto",
        help="what counts as a step (default: the strongest source that speaks)",
    )
    parser.add_argument(
        "--budget",
        default="1%",
        help="share of the time that close looks may cost (default 1%%)",
    )
    parser.add_argument(
        "--fail-on",
        choices=("leak", "growing"),
        help="exit with 1 on such a verdict and with 3 without enough evidence",
    )


TAKE_A_VALUE = {"--out", "--report", "--steps-from", "--budget", "--fail-on"}


def split_program(
    words: Sequence[str], take_a_value: Collection[str] = frozenset(TAKE_A_VALUE)
) -> tuple[list[str], list[str]]:
    """Our own options, and the program with all that follows it."""
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return list(words[:position]), list(words[position + 1 :])
        if word == "-m" or not word.startswith("-"):
            break
        position += 2 if word in take_a_value else 1
    return list(words[:position]), list(words[position:])


def run(options: argparse.Namespace) -> int:
    for path in options.report:
        format_of(path)  # a wrong ending is said before hours of running, not after
    command = command_for(options)
    budget = parse_budget(options.budget)
    directory = new_directory(options.out, command[1:] or command)
    settings = {"steps_from": options.steps_from, "budget": f"{budget:g}"}
    write_header(directory, command, settings)
    with live_view(directory) if options.live else nullcontext() as beside:
        supervisor = Supervisor(
            directory,
            command,
            environment_for(directory, steps_from=options.steps_from, budget=budget),
            beside,
        )
        try:
            exited = supervisor.run()
        except OSError as error:
            raise errors.command_not_found(command[0]) from error
    report = _tell(directory, supervisor, options)
    return _exit_code(exited, report, options.fail_on)


def command_for(options: argparse.Namespace) -> tuple[str, ...]:
    """The words to execute: scripts and modules run under this Python, commands as they are."""
    words = options.program
    if not words:
        raise errors.no_program()
    if words[0] == "-m":
        return (sys.executable, *words)
    program = words[0]
    # A missing script or a folder without __main__.py is handed to Python all the same:
    # its own message and exit code are what the user knows.
    if program.endswith((".py", ".pyc", ".pyw", ".pyz")) or os.path.isdir(program):
        return (sys.executable, *words)
    found = shutil.which(program)
    if found is not None:
        return (found, *words[1:])
    if os.path.exists(program):
        return (sys.executable, *words)
    raise errors.command_not_found(program)


def parse_budget(value: str) -> float:
    """`1%`, `0.5 %` or `0.01`, as a share."""
    number = value.strip()
    try:
        share = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise errors.bad_option(
            "--budget", value, "a share of the time above 0 and up to 100 %", "--budget 1%"
        )
    return share


def _tell(directory: str, supervisor: Supervisor, options: argparse.Namespace) -> Report | None:
    """Report on stderr (stdout belongs to the program) and into files.

    Whatever goes wrong here is said and goes no further: the program's exit status is passed on.
    """
    report: Report | None = None
    picture: Picture | None = None
    try:
        has_picture = any(draws(format_of(path)) for path in options.report)
        report, picture = _report(directory, supervisor, has_picture=has_picture)
        # First: a file that cannot be written must not cost the report.
        show(report, directory, sys.stderr, quiet=options.quiet)
    except errors.LeakscopeError as error:
        print(error, file=sys.stderr)
    except Exception:  # noqa: BLE001 - a bug of ours, shown as one
        traceback.print_exc()
    if report is not None:
        for path in options.report:
            try:
                write_report(report, path, picture=picture, recording=directory)
            except errors.LeakscopeError as error:
                print(error, file=sys.stderr)
        tell_host(report, os.getcwd(), os.environ, sys.stderr, is_told=options.quiet)
    return report


def _report(
    directory: str, supervisor: Supervisor, *, has_picture: bool
) -> tuple[Report, Picture | None]:
    # numpy and scipy only now, when the program is over
    from leakscope.analysis import analyse, analyse_with_picture
    from leakscope.record.reader import load

    if supervisor.lost_records:
        lost = text.plural(supervisor.lost_records, "record")
        print(
            f"leakscope: {lost} could not be written ({supervisor.last_error}); "
            "the report covers what was",
            file=sys.stderr,
        )
    recording = load(directory)
    if supervisor.end is not None:
        recording.add(supervisor.end)
    if not has_picture:
        return analyse(recording), None
    exhibit = analyse_with_picture(recording)
    return exhibit.report, exhibit.picture


def _exit_code(exited: Exited, report: Report | None, fail_on: str | None) -> int:
    if fail_on is not None and exited == Exited(0, None):
        if report is None:
            return 3
        failing = {Outcome.LEAK} | ({Outcome.GROWING} if fail_on == "growing" else set())
        if report.verdict in failing:
            return 1
        return 3 if report.verdict is Outcome.UNKNOWN else 0
    if exited.signal is not None:
        die_of(exited.signal)
    return exited.code if exited.code is not None else 1


def die_of(number: int) -> None:
    """End as the program ended, so that whoever waits for us sees the same status."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has dumped its core already
    sys.stdout.flush()
    sys.stderr.flush()
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)
