"""`leakscope top` and `leakscope run --live` in a real terminal, beside a real program.

Whatever happens to the view (quit, killed, resized, its terminal gone) the program neither ends,
nor prints something else, nor returns another status.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

import golden
from leakscope.cli.live import _RESET
from leakscope.record.format import OUTPUT_FILE, SUFFIX, process_of
from leakscope.record.reader import load
from make import KIB, MIB, line, recording
from running import LEAKSCOPE, PROGRAMS, environment
from terminal import Terminal

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pty.fork beside threads

_PROGRAM = str(PROGRAMS / "live_steps.py")
_LIMIT_S = 60


def _until(condition: object) -> None:
    deadline = time.monotonic() + _LIMIT_S
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ── a finished run ──


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with steady growth of which nobody found the holder."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    made = recording(directory).steps(
        400, in_use=line(64 * KIB), rss=line(80 * KIB, 800 * MIB), blocks=line(0)
    )
    made.roles(3, parameter=24 * MIB, gradient=24 * MIB, optimizer_state=48 * MIB)
    made.machine([1, 400], cgroup_use_bytes=line(80 * KIB, 900 * MIB))
    made.ended(400)
    return directory


def _is_agreed(config: pytest.Config, name: str, terminal: Terminal) -> None:
    """Sooner or later: on a busy machine the last drawing may come long after the one before."""
    expected = (golden.GOLDEN / name).read_text() if (golden.GOLDEN / name).exists() else ""
    deadline = time.monotonic() + _LIMIT_S / 2
    while terminal.settle() != expected and time.monotonic() < deadline:
        if config.getoption("--update-golden"):
            break
    golden.check(config, name, terminal.text)


def test_the_screen_reads_as_agreed_at_every_size(
    finished: Path, pytestconfig: pytest.Config
) -> None:
    """Breaks when a part overlaps another, or a new size leaves the old drawing behind."""
    terminal = Terminal([*LEAKSCOPE, "top", str(finished)], finished, columns=110, rows=34)
    terminal.shows("GROWING")
    _is_agreed(pytestconfig, "follow/top.110x34.txt", terminal)
    for columns, rows in ((72, 24), (44, 16), (110, 34)):
        terminal.resize(columns, rows)
        _is_agreed(pytestconfig, f"follow/top.{columns}x{rows}.txt", terminal)
    terminal.type("?")
    terminal.shows("close the view")
    terminal.type("q")
    assert terminal.end() == 0
    assert terminal.text.strip() == ""  # the alternate screen is left, and nothing stays behind


def test_no_colour_means_none(finished: Path) -> None:
    terminal = Terminal([*LEAKSCOPE, "top", str(finished)], finished, env={"NO_COLOR": "1"})
    terminal.shows("GROWING")
    terminal.settle()
    terminal.type("q")
    assert terminal.end() == 0
    codes = {
        int(code)
        for codes in re.findall(rb"\x1b\[([0-9;]*)m", terminal.written)
        for code in codes.split(b";")
        if code
    }
    is_default = {39, 49}
    assert [c for c in codes - is_default if 30 <= c <= 48 or 90 <= c <= 107] == []


def test_without_a_terminal_it_is_said_once(finished: Path) -> None:
    for terminal in ("xterm", "dumb"):
        told = subprocess.run(
            [*LEAKSCOPE, "top", finished],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment({"TERM": terminal, "COLUMNS": "70"}),
            check=True,
        )
        assert "GROWING" in told.stdout
        assert "\x1b" not in told.stdout
        assert max(map(len, told.stdout.splitlines())) <= 70
        assert told.stderr == ""


# ── beside a program that runs in another terminal ──


class _Running:
    """A program under `leakscope run`, without a terminal of its own."""

    def __init__(self, directory: Path) -> None:
        self.stop = directory / "stop"
        self.recording = directory / "rec"
        command = [*LEAKSCOPE, "run", "--quiet", "--out", str(self.recording), _PROGRAM]
        self.run = subprocess.Popen(
            [*command, str(self.stop)],
            cwd=directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        _until(self._processes)

    def _processes(self) -> list[Path]:
        return [f for f in self.recording.glob(f"*{SUFFIX}") if f.name[0].isdigit()]

    @property
    def pid(self) -> int:
        return int(self._processes()[0].name.partition("-")[0])

    def steps(self) -> int:
        rows = load(str(self.recording)).columns(process_of(self._processes()[0].name) or "", "api")
        return max((step for step in rows.get("step", []) if step is not None), default=0)

    def goes_on(self) -> None:
        before = self.steps()
        _until(lambda: self.steps() > before)

    def end(self) -> tuple[int, bytes, bytes]:
        self.stop.touch()
        out, said = self.run.communicate(timeout=_LIMIT_S)
        return self.run.returncode, out, said.partition(b"leakscope: ")[0]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[_Running]:
    program = _Running(tmp_path)
    yield program
    program.stop.touch()
    program.run.wait(_LIMIT_S)


def test_a_view_that_is_killed_resized_or_cut_off_is_not_noticed(
    running: _Running, tmp_path: Path
) -> None:
    """Breaks when a view of a run can end it, stop it, or change what it prints or returns."""
    by_pid = [*LEAKSCOPE, "top", str(running.pid)]

    view = Terminal(by_pid, tmp_path)
    view.shows("running · ")
    view.shows("step ")
    os.kill(view.pid, signal.SIGKILL)
    assert view.wait() == -signal.SIGKILL
    running.goes_on()

    view = Terminal([*LEAKSCOPE, "top", str(running.run.pid)], tmp_path)  # by leakscope's own pid
    view.shows("LS501")  # a finding appears while the program runs
    for columns, rows in ((40, 10), (200, 60), (5, 2), (90, 30)):
        view.resize(columns, rows)
        view.settle(0.3)
    view.shows("running")
    os.kill(view.pid, signal.SIGTERM)
    assert view.end() == 0
    assert view.text.strip() == ""
    running.goes_on()

    view = Terminal(by_pid, tmp_path)
    view.shows("running · ")
    view.hang_up()
    assert view.wait() in (128 + signal.SIGHUP, -signal.SIGHUP)
    running.goes_on()

    view = Terminal(by_pid, tmp_path)
    view.shows("running · ")
    os.kill(view.pid, signal.SIGSTOP)
    running.goes_on()
    # Not gone on with: Textual 8 then starts a second thread that reads keys, and waits for it at
    # the end for ever if the first has taken them (see docs/limits.md).
    os.kill(view.pid, signal.SIGKILL)
    assert view.wait() == -signal.SIGKILL

    view = Terminal(by_pid, tmp_path)
    view.shows("running · ")
    view.type("\x03")  # Ctrl-C closes the view, and only that
    assert view.end() == 0
    running.goes_on()

    assert running.end() == (7, b"started False\n", b"finished\n")


def test_a_view_sees_the_program_end(running: _Running, tmp_path: Path) -> None:
    view = Terminal([*LEAKSCOPE, "top", str(running.recording)], tmp_path)
    view.shows("running · ")
    assert running.end()[0] == 7
    view.shows("ended with 7")
    view.shows("LEAK  ")
    view.type("q")
    assert view.end() == 0


# ── in the same terminal ──


def _live(tmp_path: Path) -> Terminal:
    command = [*LEAKSCOPE, "run", "--live", "--quiet", "--out", str(tmp_path / "rec"), _PROGRAM]
    terminal = Terminal([*command, str(tmp_path / "stop")], tmp_path)
    terminal.shows("running · ")
    assert "started" not in terminal.text
    return terminal


def _view_of(terminal: Terminal) -> int:
    children = Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text().split()
    (view,) = (int(one) for one in children if b"--beside" in _command(one))
    return view


def _command(pid: str) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _printed(terminal: Terminal) -> list[str]:
    return [text for text in terminal.text.split("\n") if text and "leakscope" not in text]


def test_live_keeps_what_is_printed_and_shows_it_at_the_end(tmp_path: Path) -> None:
    """Breaks when output is lost or mixed into the screen, or the exit status is the view's."""
    terminal = _live(tmp_path)
    terminal.type("o")
    terminal.shows("started False")
    terminal.type("\x1b")
    terminal.resize(70, 20)
    terminal.shows("running · ")
    (tmp_path / "stop").touch()
    assert terminal.end() == 7
    assert terminal.text.startswith("started False\nfinished\nleakscope: ")
    assert (tmp_path / "rec" / OUTPUT_FILE).read_bytes() == b"started False\nfinished\n"


@pytest.mark.parametrize("how", ["q", "SIGKILL", "SIGTERM"])
def test_live_gives_the_terminal_back_when_the_view_goes(how: str, tmp_path: Path) -> None:
    terminal = _live(tmp_path)
    if how == "q":
        terminal.type("q")
    else:
        os.kill(_view_of(terminal), getattr(signal, how))
    terminal.until(lambda screen: screen.strip() == "started False", "the program's own output")
    terminal.type("seen")  # the terminal echoes again
    terminal.shows("seen")
    (tmp_path / "stop").touch()
    assert terminal.end() == 7
    assert "finished\n" in terminal.text


class _Leaving(pyte.Screen):
    """Remembers which modes were left."""

    def __init__(self) -> None:
        self.left: list[int] = []
        super().__init__(40, 5)

    def reset_mode(self, *modes: int, **details: object) -> None:
        self.left += modes


@pytest.mark.parametrize(
    "half", [b"\x1b]0;lea", b"\x1b[38;2;1", b"\x1b[?", b"\x1b", "⠤".encode()[:2]]
)
def test_what_a_killed_view_was_about_to_say_does_not_swallow_the_reset(half: bytes) -> None:
    """Breaks when half of a title or of a colour leaves the terminal on the view's screen."""
    screen = _Leaving()
    stream = pyte.ByteStream(screen)
    stream.feed(half)
    stream.feed(_RESET)
    assert 1049 in screen.left


def test_live_leaves_ctrl_c_to_the_program(tmp_path: Path) -> None:
    """Breaks when the interrupt ends the view instead, or reaches the program twice."""
    terminal = _live(tmp_path)
    terminal.type("\x03")
    assert terminal.end() == 5
    assert terminal.text.startswith("started False\ninterrupted once\nleakscope: ")
    assert "Traceback" not in terminal.text


def test_live_without_a_terminal_only_says_so(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    told = subprocess.run(
        [*LEAKSCOPE, "run", "--live", "--quiet", _PROGRAM, str(tmp_path / "stop")],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert told.returncode == 7
    assert told.stdout == "started False\n"
    assert "--live needs a terminal" in told.stderr
    assert "finished\n" in told.stderr
