"""The view beside the program: `leakscope run --live`.

One terminal, two that write to it. So the view gets it, and whatever the program would have printed
there goes to a file of the recording instead: a file never blocks and nobody can kill it. When the
view is gone, for whatever reason, the terminal is given back and gets what is in the file, from the
start and then as it comes.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leakscope.record.format import OUTPUT_FILE
from leakscope.supervise import Streams

_BLOCK = 1 << 16
_BLOCKS_AT_ONCE = 16
_PATIENCE_S = 5.0

# What a killed view was about to say is cancelled. Then alternate screen, mouse, paste and focus
# reports, keyboard protocol off; wrapping and cursor on: what it does itself when it is not killed.
_CANCEL = b"\x18\x1b\\"
_RESET = _CANCEL + (
    b"\x1b[<u\x1b[?2004l\x1b[?1004l\x1b[?1000l\x1b[?1003l\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"
)


@contextmanager
def live_view(directory: str) -> Iterator[LiveView | None]:
    """The view, for as long as the block lasts; None, and a word, where there is no terminal."""
    terminal = _terminal()
    if terminal is None:
        print(
            "leakscope: --live needs a terminal in the foreground; the program runs without it",
            file=sys.stderr,
        )
        yield None
        return
    view = LiveView(directory, terminal)
    try:
        yield view
    finally:
        view.close()


def _terminal() -> int | None:
    """A descriptor of our own for the terminal we are in the foreground of."""
    for stream in (2, 1, 0):
        try:
            if os.isatty(stream) and os.tcgetpgrp(stream) == os.getpgrp():
                return os.open(os.ttyname(stream), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            continue
    return None


class LiveView:
    """A view in a process of its own, and what becomes of the terminal when it ends."""

    def __init__(self, directory: str, terminal: int) -> None:
        self._terminal = terminal
        self._settings: list[Any] = termios.tcgetattr(terminal)
        path = os.path.join(directory, OUTPUT_FILE)
        self._output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._printed = os.open(path, os.O_RDONLY)
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        self._pending = b""
        self._view: subprocess.Popen[bytes] | None = self._start(directory)

    def _start(self, directory: str) -> subprocess.Popen[bytes]:
        # -P: a file of the program's called random.py must not become the view's `random`.
        words = [sys.executable, "-P", "-m", "leakscope", "top", "--beside", directory]
        # The terminal goes on sending signals for Ctrl-C and Ctrl-Z: to the program, as ever.
        environment = os.environ | {"TEXTUAL_ALLOW_SIGNALS": "1", "TEXTUAL_DISABLE_KITTY_KEY": "1"}
        blocking = os.open(os.ttyname(self._terminal), os.O_RDWR | os.O_NOCTTY)
        try:
            return subprocess.Popen(
                words, stdin=blocking, stdout=blocking, stderr=blocking, env=environment
            )
        finally:
            os.close(blocking)

    @property
    def streams(self) -> Streams:
        """What of the program's would be at the terminal is not; the rest stays as it is."""
        return Streams(
            self._nothing if os.isatty(0) else None,
            self._output if os.isatty(1) else None,
            self._output if os.isatty(2) else None,
        )

    def attend(self) -> None:
        """Notices when the view is gone; from then on shows what the program prints."""
        if self._view is not None and self._view.poll() is not None:
            self._give_back()
        if self._view is None:
            self._show()

    def close(self) -> None:
        """The program is over: so is the view, and all that was printed is shown."""
        if self._view is not None:
            self._view.terminate()
            try:
                self._view.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._view.kill()
                self._view.wait()
            self._give_back()
        while self._show():
            # Somebody may have stopped the terminal with Ctrl-S: they will go on.
            select.select([], [self._terminal], [], 1.0)
        for descriptor in (self._output, self._printed, self._nothing, self._terminal):
            os.close(descriptor)

    def _give_back(self) -> None:
        """The terminal as it was. A view that could leave by itself has done so; a killed one has
        not, which shows in the settings it left behind."""
        self._view = None
        # From the background this signal would stop us, and the program would have no parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            is_left_drawn = not termios.tcgetattr(self._terminal)[3] & termios.ICANON
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._settings)
            if is_left_drawn:
                # First of all that is shown: a view that was killed in the middle of a frame has
                # filled the terminal's buffer, and what is written right now would be lost.
                self._pending = _RESET
        except (termios.error, OSError):
            pass  # the terminal itself is gone
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _show(self) -> bool:
        """Pass on some of what was printed, as the terminal takes it; True if more may be there."""
        for _ in range(_BLOCKS_AT_ONCE):
            try:
                self._pending = self._pending or os.read(self._printed, _BLOCK)
                if not self._pending:
                    return False
                self._pending = self._pending[os.write(self._terminal, self._pending) :]
            except BlockingIOError:
                return True
            except OSError:  # nobody is there to see it; the file has it all
                self._pending = b""
                return False
        return True
