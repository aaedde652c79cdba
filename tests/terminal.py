"""A terminal as a person has it: a pseudo-terminal, and a screen that is drawn from its bytes."""

from __future__ import annotations

import copy
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from running import environment

_LIMIT_S = 90
_ALTERNATE = 1049
# Queries and settings of keyboards that pyte does not know and would print.
_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*u")


class _Screen(pyte.HistoryScreen):
    """pyte's, with the alternate screen that full-screen programs draw on."""

    def set_mode(self, *modes: int, **kwargs: bool) -> None:
        if _ALTERNATE in modes and kwargs.get("private"):
            self._kept = copy.deepcopy(self.buffer), copy.copy(self.cursor)
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: bool) -> None:
        if _ALTERNATE in modes and kwargs.get("private"):
            self.buffer, self.cursor = self._kept
            self.dirty.update(range(self.lines))
        super().reset_mode(*modes, **kwargs)


class Terminal:
    """Runs one command in a terminal of its own and session, and keeps what is on the screen."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        *,
        columns: int = 120,
        rows: int = 40,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.screen = _Screen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        """Every byte that reached the terminal."""
        variables = environment({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})})
        variables.pop("COLUMNS", None)
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                _set_size(0, columns, rows)
                os.chdir(cwd)
                os.execve(command[0], list(command), variables)
            finally:
                os._exit(127)
        _set_size(self._master, columns, rows)

    @property
    def text(self) -> str:
        """What a person sees, without the spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self.screen.display) + "\n"

    def until(self, seen: Callable[[str], object], what: str = "") -> str:
        """Read until the screen is as wished for."""
        deadline = time.monotonic() + _LIMIT_S
        while not seen(self.text):
            if not self._read(deadline):
                raise AssertionError(f"never seen: {what or seen}\n{self.text}")
        return self.text

    def shows(self, words: str) -> str:
        return self.until(lambda screen: words in screen, words)

    def settle(self, seconds: float = 0.6) -> str:
        """Read until nothing more is drawn for a while."""
        while self._read(time.monotonic() + seconds):
            pass
        return self.text

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        _set_size(self._master, columns, rows)  # the kernel tells the foreground group

    def hang_up(self) -> None:
        """As when a window is closed or a connection breaks."""
        os.close(self._master)
        self._master = -1

    def end(self) -> int:
        """Read to the end; the exit status, negative for a signal."""
        deadline = time.monotonic() + _LIMIT_S
        while self._master >= 0 and self._read(deadline):
            pass
        return self.wait()

    def wait(self) -> int:
        deadline = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            select.select([], [], [], 0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"still running after {_LIMIT_S} s\n{self.text}")

    def _read(self, deadline: float) -> bool:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([self._master], [], [], left)[0]:
            return False
        try:
            block = os.read(self._master, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self.written += block
        self._stream.feed(_UNKNOWN.sub(b"", block))
        return bool(block)


def _set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
