"""The library's public functions. Both halves meet here, and the reading half only when asked."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import leakscope
from leakscope import errors
from leakscope.agent.agent import Agent
from leakscope.agent.current import running_agent, start_agent, step, stop_agent
from leakscope.inject import RUN_DIR
from leakscope.model import FORMAT_VERSION, Comparison, Report, Run
from leakscope.record.format import RANK_VARIABLES, host_name, number_in, storable, write_run

if TYPE_CHECKING:
    from leakscope.record.reader import Recording

__all__ = ["Watch", "analyse", "compare", "load", "step", "watch"]


class Watch:
    """What `with leakscope.watch() as w` gives."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        """Folder of the recording; `leakscope report` reads it, now or later."""
        self._agent: Agent | None = None
        self._is_guest = False

    def __enter__(self) -> Watch:
        # Under `leakscope run` the agent is the run's, and goes on after the block.
        self._is_guest = _run_directory() == self.directory
        self._agent = start_agent(self.directory)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._agent is not None and not self._is_guest:
            stop_agent(self._agent)
        elif self._agent is not None:
            self._agent.pulse.flush()
        self._agent = None

    def step(self) -> None:
        """The same as `leakscope.step()`."""
        step()

    def report(self) -> Report:
        """What can be said so far; loads numpy and scipy. Final after the `with` block."""
        if self._agent is not None:
            self._agent.pulse.flush()
        return analyse(self.directory)


def watch(out: str | os.PathLike[str] | None = None) -> Watch:
    """Watch this process from inside for as long as the `with` block lasts.

    Args:
        out: folder of the recording; by default a new one under `.leakscope/`. Under
            `leakscope run` the run's own recording is used, whatever is said here.

    Raises:
        LeakscopeError: the folder cannot be written, or holds something already.
    """
    running = _run_directory()
    if running is not None:
        return Watch(running)
    directory = new_directory(os.fspath(out) if out is not None else None, sys.argv[:1])
    write_header(directory, tuple(sys.orig_argv), {"watch": "inside"})
    return Watch(directory)


def _run_directory() -> str | None:
    """Of the recording that is being made in this process already, if there is one."""
    agent = running_agent()
    return agent.directory if agent is not None else os.environ.get(RUN_DIR)


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording as far as it is whole."""
    from leakscope.record.reader import load as read

    return read(os.fspath(path))


def analyse(path: str | os.PathLike[str]) -> Report:
    """Say what a recording shows."""
    from leakscope.analysis import analyse as read

    return read(load(path))


def compare(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> Comparison:
    """Say in what two recordings differ, and which difference of their machines may be why."""
    from leakscope.comparison import compare_reports

    return compare_reports(analyse(a), analyse(b))


def new_directory(wanted: str | None, words: list[str] | tuple[str, ...]) -> str:
    """An empty folder for a recording, named after the program and the time."""
    if wanted is None:
        from leakscope.record.secrets import HIDDEN, hide_in_command

        words = hide_in_command(words, os.environ)
        script = next((word for word in words if not word.startswith("-")), "run")
        script = "run" if HIDDEN in script else script
        stem = os.path.splitext(os.path.basename(script.rstrip("/")))[0] or "run"
        name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        if (rank := number_in(os.environ, RANK_VARIABLES)) is not None:
            # Tasks of one job start in the same second, perhaps with the same number.
            name += f"-{host_name()}-rank{rank}"
        wanted = os.path.join(".leakscope", name)
    try:
        if os.path.isdir(wanted) and os.listdir(wanted):
            raise errors.cannot_write(wanted, "the folder is not empty")
        os.makedirs(wanted, exist_ok=True)
    except OSError as error:
        raise errors.cannot_write(wanted, error.strerror or str(error)) from None
    return wanted


def write_header(directory: str, command: tuple[str, ...], settings: dict[str, str]) -> None:
    """The first file of a recording: what is run, where, with which settings."""
    # Not in a program that only steps: its start is not ours to lengthen.
    from leakscope.observe.machine.describe import describe_machine
    from leakscope.record.secrets import hide_in_command

    header = Run(
        id=storable(os.path.basename(os.path.abspath(directory))),
        format=FORMAT_VERSION,
        leakscope=leakscope.__version__,
        started_wall_ns=time.time_ns(),
        started_mono_ns=time.monotonic_ns(),
        command=tuple(map(storable, hide_in_command(command, os.environ))),
        directory=storable(os.getcwd()),
        machine=describe_machine(),
        settings=settings,
    )
    try:
        write_run(directory, header)
    except OSError as error:
        raise errors.cannot_write(directory, error.strerror or str(error)) from None
