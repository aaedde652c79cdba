"""In a real terminal: what the program sees of it, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from pathlib import Path

import pytest

from running import LEAKSCOPE, PYTHON, environment

_LIMIT_S = 60


def _in_terminal(command: list[str], cwd: Path, after: bytes, keys: bytes) -> tuple[int, str]:
    """Run in a terminal of its own, type `keys` once `after` was printed; status and screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            os.execve(command[0], command, environment())
        finally:
            os._exit(127)
    screen = b""
    typed = False
    deadline = time.monotonic() + _LIMIT_S
    try:
        while True:
            if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                pytest.fail(f"still running after {_LIMIT_S} s: {screen!r}")
            try:
                block = os.read(terminal, 4096)
            except OSError:  # nobody has the other end any more
                break
            if not block:
                break
            screen += block
            if not typed and after in screen:
                time.sleep(0.2)  # until the program is past the print and waits
                os.write(terminal, keys)
                typed = True
    finally:
        os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, screen.decode()


_PROGRAMS = {
    "uncaught": "try:\n    time.sleep(60)\nfinally:\n    print('cleaned up')\n",
    "caught": "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit('caught')\n",
    "counted": (
        "times = []\nsignal.signal(signal.SIGINT, lambda *a: times.append(1))\nsignal.pause()\n"
        "time.sleep(0.3)\nprint('times', len(times))\n"
    ),
}


@pytest.mark.parametrize("kind", _PROGRAMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ctrl_c_is_the_programs_own(kind: str, tmp_path: Path) -> None:
    """Breaks when the program gets the interrupt twice or never, or we print a traceback too."""
    script = tmp_path / "wait.py"
    script.write_text(
        "import os, signal, sys, time\n"
        "print([os.isatty(n) for n in range(3)], os.get_terminal_size(), flush=True)\n"
        "print(os.tcgetpgrp(0) == os.getpgrp(), 'ready', flush=True)\n" + _PROGRAMS[kind]
    )
    plain = _in_terminal([PYTHON, str(script)], tmp_path, b"ready", b"\x03")
    command = [*LEAKSCOPE, "run", "--quiet", "--out", str(tmp_path / "rec"), str(script)]
    status, screen = _in_terminal(command, tmp_path, b"ready", b"\x03")
    own, mark, said = screen.partition("leakscope: ")
    assert (status, own) == plain
    assert mark
    assert "Traceback" not in said
    if kind == "uncaught":
        assert status == -signal.SIGINT
        assert own.count("KeyboardInterrupt") == 1
    if kind == "counted":
        assert "times 1\r\n" in own
