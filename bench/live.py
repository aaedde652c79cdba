"""What the live view costs beside a real run: processor time as a share of one core.

python bench/live.py --seconds 60
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "tests" / "programs" / "live_steps.py"
LEAKSCOPE = (sys.executable, "-m", "leakscope")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stop, recording = Path(folder) / "stop", Path(folder) / "rec"
        words = ["run", "--quiet", "--out", str(recording), str(PROGRAM), str(stop)]
        run = subprocess.Popen([*LEAKSCOPE, *words])
        while not (recording / "run.json").exists():
            time.sleep(0.05)
        view, terminal = _open_view(recording)
        _read(terminal, 5.0)
        began_s, before_s = time.monotonic(), _cpu_s(view)
        _read(terminal, options.seconds)
        spent_s, lasted_s = _cpu_s(view) - before_s, time.monotonic() - began_s
        os.write(terminal, b"q")
        _read(terminal, 2.0)
        os.waitpid(view, 0)
        stop.touch()
        run.wait()
    print(f"start {before_s:.2f} s of CPU; then {100 * spent_s / lasted_s:.1f} % of one core")


def _open_view(recording: Path) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*LEAKSCOPE, "top", str(recording)]
        os.execve(command[0], command, os.environ | {"TERM": "xterm-256color"})
    return pid, terminal


def _read(terminal: int, seconds: float) -> None:
    """As a terminal does: what is drawn has to be taken, or the view waits."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                os.read(terminal, 65536)
            except OSError:  # it has ended
                return


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


if __name__ == "__main__":
    main()
