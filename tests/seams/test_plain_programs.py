"""Programs without a framework: followed from inside by the clock, and they cannot tell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.inject import environment_for
from leakscope.judge.series import RunSeries
from leakscope.model import DRIVER_GAP, IMPORTING, Outcome
from leakscope.record.reader import Recording
from running import PYTHON, Watched, environment, run_plain, run_watched

_LOOP = """
import sys, time
import numpy as np
kept = []
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    kept.append(np.ones(2000))
    time.sleep(0.001)
print("kept some", len(kept) > 0, file=sys.stderr)
print("done")
sys.exit(3)
"""


def _watch(tmp_path: Path, source: str, *words: str) -> Watched:
    script = tmp_path / "program.py"
    script.write_text(source)
    return run_watched([script, *words], tmp_path)


def _main(recording: Recording) -> str:
    (main,) = (one for one, start in recording.starts.items() if start.kind == "main")
    return main


def _column(recording: Recording, name: str) -> list[int]:
    column = recording.columns(_main(recording), "tick").get(name, [])
    return [value for value in column if value is not None]


def test_numpy_program_has_exact_rows(tmp_path: Path) -> None:
    """Breaks when a program without torch is only seen from outside."""
    script = tmp_path / "program.py"
    script.write_text(_LOOP)
    plain = run_plain([script, "0.5"], tmp_path)
    ran = run_watched([script, "0.5"], tmp_path)
    assert ran.seen == plain.seen
    recording = ran.recording()
    in_use = _column(recording, "in_use_bytes")
    assert len(in_use) >= 8
    assert in_use[-1] > in_use[0]
    for name in ("held_bytes", "blocks_count", "rss_bytes", "mono_ns"):
        assert len(_column(recording, name)) >= 8, name
    expected = ("native allocation sites", DRIVER_GAP)
    assert [gap for gap in recording.gaps if gap.what not in expected] == []


def test_ticks_are_a_clock_and_no_steps(tmp_path: Path) -> None:
    """Breaks when the report calls ticks steps of the program, or leaves out their counters."""
    ran = _watch(tmp_path, _LOOP, "1.5")
    assert ran.report["steps_from"] == "time"
    assert [one["steps"] for one in ran.report["processes"]] == [None]
    run = RunSeries(ran.recording())
    assert run.axis.process is None
    series = run.of(_main(ran.recording()))
    assert {"heap.in_use_bytes", "heap.held_bytes", "python.blocks_count"} <= set(series)
    assert series["heap.in_use_bytes"].is_exact
    # From outside, where it is read more often.
    assert len(series["process.rss_bytes"].steps) > len(series["heap.in_use_bytes"].steps)
    verdicts = {one["series"]["metric"]: one["outcome"] for one in ran.report["verdicts"]}
    assert verdicts["heap.in_use_bytes"] in ("growing", "leak")


def test_tick_numbers_are_hundredths_of_a_second(tmp_path: Path) -> None:
    """Breaks when what is written with a tick as its step cannot be put on the clock again."""
    recording = _watch(tmp_path, _LOOP, "1").recording()
    ticks, moments = _column(recording, "step"), _column(recording, "mono_ns")
    assert ticks == sorted(ticks)
    for tick, moment in zip(ticks, moments, strict=True):
        assert abs((moment - moments[0]) / 1e7 - (tick - ticks[0])) < 5


def test_step_takes_over_from_the_clock(tmp_path: Path) -> None:
    """Breaks when the clock goes on taking rows in a program that says where its steps are."""
    source = (
        "import sys, time\ntime.sleep(0.4)\nassert 'leakscope.agent' in sys.modules\n"
        "import leakscope\nfor _ in range(300):\n    leakscope.step()\n    time.sleep(0.002)\n"
    )
    ran = _watch(tmp_path, source)
    recording = ran.recording()
    assert (ran.report["steps_from"], ran.report["steps"]) == ("api", 300)
    first_step = recording.columns(_main(recording), "api")["mono_ns"][0]
    assert first_step is not None
    assert max(_column(recording, "mono_ns")) <= first_step


def test_what_the_program_asks_about_threads(tmp_path: Path) -> None:
    """Breaks when our thread, or `threading` imported by us, shows in the program's own view."""
    source = (
        "import sys, time\ntime.sleep(0.5)\nimport signal, threading\n"
        "print(threading.active_count(), [one.name for one in threading.enumerate()])\n"
        "print(threading.current_thread() is threading.main_thread(), sys.getswitchinterval())\n"
        "signal.signal(signal.SIGALRM, lambda *_: print(threading.current_thread().name))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.1)\nsignal.pause()\n"
    )
    script = tmp_path / "program.py"
    script.write_text(source)
    plain = run_plain([script], tmp_path)
    ran = run_watched([script], tmp_path)
    assert ran.seen == plain.seen
    assert _column(ran.recording(), "in_use_bytes")


def test_signal_blocked_by_the_program_is_left_for_it(tmp_path: Path) -> None:
    """Breaks when our thread takes a signal that the program has blocked in order to wait for."""
    source = (
        "import os, signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "time.sleep(0.4)\nos.kill(os.getpid(), signal.SIGUSR1)\ntime.sleep(0.1)\n"
        "print(signal.sigwait([signal.SIGUSR1]).name)\n"
    )
    ran = _watch(tmp_path, source)
    assert (ran.status, ran.stdout) == (0, b"SIGUSR1\n")


_FORKS = """
import multiprocessing, os, sys, time

def work():
    kept = [bytearray(1000)]
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        kept.append(bytearray(1000))
        time.sleep(0.001)

def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)

fork()  # before the agent is there
time.sleep(0.5)
for _ in range(20):
    fork()
    time.sleep(0.004)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
fork()
print("done", child.pid)
"""


def test_forks_do_not_warn_and_children_are_followed(tmp_path: Path) -> None:
    """Breaks when `fork` warns of our thread, or a child has no clock of its own."""
    script = tmp_path / "program.py"
    script.write_text(_FORKS)
    ran = run_watched([PYTHON, "-W", "error::DeprecationWarning", script], tmp_path)
    assert (ran.status, ran.stderr) == (0, b""), ran.seen
    child = ran.stdout.split()[1].decode()
    recording = ran.recording()
    (process,) = (one for one in recording.pulsed() if one.startswith(child + "-"))
    rows = recording.columns(process, "tick")
    assert len([value for value in rows.get("in_use_bytes", []) if value is not None]) >= 3
    expected = ("native allocation sites", DRIVER_GAP)
    assert [gap for gap in recording.gaps if gap.what not in expected] == []


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_forks_do_not_warn_on_newer_python(version: str, tmp_path: Path) -> None:
    """Breaks when the thread is counted by a Python that warns of threads at a fork."""
    python = next(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), None)
    if python is None:
        pytest.skip(f"no Python {version} here")
    script = tmp_path / "program.py"
    script.write_text(_FORKS)
    record = tmp_path / "record"
    record.mkdir()
    env = environment_for(str(record), base=environment())
    words = [str(python), "-W", "error::DeprecationWarning", str(script)]
    done = subprocess.run(words, env=env, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    # Without msgspec there the agent cannot be loaded, and says so; the waiting is the same.
    text = "".join(file.read_text() for file in record.glob("*.jsonl"))
    assert '"source":"tick"' in text or "msgspec" in text


def test_program_that_ends_at_once_loads_nothing(tmp_path: Path) -> None:
    """Breaks when a process that is over in a moment pays for the agent, or hears of it."""
    source = (
        "import atexit, sys\n"
        "atexit.register(lambda: print([m for m in sys.modules if m.startswith('leakscope')]))\n"
    )
    ran = _watch(tmp_path, source)
    assert ran.seen == (0, "[]\n", "")
    assert ran.recording().sources(_main(ran.recording())) in (("time",), ())


_THREADS = """
import sys, threading, time
time.sleep(float(sys.argv[1]))
for _ in range(4):
    threading.Thread(target=time.sleep, args=(0.02,), daemon=True).start()
threading.Thread(target=time.sleep, args=(0.01,)).start()
print("end")
"""


@pytest.mark.parametrize("seconds", ["0.13", "0.15", "0.16", "0.18", "0.2", "0.25", "0.4"])
def test_program_with_threads_ends_cleanly(seconds: str, tmp_path: Path) -> None:
    """Breaks when the end of a program meets the agent's start, or a tick, and goes wrong."""
    ran = _watch(tmp_path, _THREADS, seconds)
    assert ran.seen == (0, "end\n", "")


@pytest.mark.parametrize("seconds", ["0.12", "0.17", "0.2", "0.3"])
def test_interrupt_while_the_agent_is_loaded(seconds: str, tmp_path: Path) -> None:
    """Breaks when a program that Ctrl-C ended exits with 1 because we loaded code meanwhile."""
    source = (
        "import signal, sys, time\nsignal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\ntime.sleep(30)\n"
    )
    script = tmp_path / "program.py"
    script.write_text(source)
    plain = run_plain([script, seconds], tmp_path)
    assert run_watched([script, seconds], tmp_path).seen == plain.seen


def test_rows_by_the_clock_import_nothing(tmp_path: Path) -> None:
    """Breaks when reading a counter loads a module: modules that come are the program starting up,
    and every look that has begun is taken back (a codec for /proc/meminfo did that)."""
    source = """
import sys, time
time.sleep(0.4)
before = set(sys.modules)
time.sleep(1.2)
print(sorted(name for name in set(sys.modules) - before if not name.startswith("leakscope.")))
"""
    ran = _watch(tmp_path, source)
    assert ran.stdout == b"[]\n"
    assert len(_column(ran.recording(), "blocks_count")) >= 8


@pytest.mark.parametrize("own_s", [None, 0.002])
def test_the_switch_interval_is_as_the_program_set_it(own_s: float | None, tmp_path: Path) -> None:
    """Breaks when what lets the agent load beside a busy program is left as it was set."""
    source = f"""
import sys, time
own_s = {own_s}
begin = time.monotonic()
seen = set()
while time.monotonic() < begin + 1.5:
    if own_s is not None and time.monotonic() > begin + 0.05:
        sys.setswitchinterval(own_s)
        own_s = None
    if time.monotonic() > begin + 1.0:
        seen.add(round(sys.getswitchinterval(), 6))
print(sorted(seen))
"""
    ran = _watch(tmp_path, source)
    assert ran.stdout.decode() == f"[{own_s or 0.005}]\n"
    assert len(_column(ran.recording(), "blocks_count")) >= 8


def test_what_we_import_at_the_end_is_not_the_start_of_the_program(tmp_path: Path) -> None:
    """Breaks when the clock of a program of a fifth of a second begins at its end: what looks for
    memory to give back is loaded then."""
    source = """
import ctypes, time
import numpy as np
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
end = time.monotonic() + 0.2
while time.monotonic() < end:
    ctypes.memset(ctypes.c_void_p(libc.malloc(100_000)), 1, 100_000)
    time.sleep(0.001)
"""
    for number in range(5):  # on a busy machine it may be over before it was followed
        directory = tmp_path / str(number)
        directory.mkdir()
        marks = _watch(directory, source).recording().marks
        at = {mark.what: mark.at.mono_ns for mark in marks}
        if "remedy" in at:
            break
    assert at["imported"] < at["armed"] < at["remedy"]


_FAILS_BEFORE_A_STEP = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(100):
    loss = (model(torch.randn(4, 9))).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_what_fails_after_its_imports_has_not_grown(tmp_path: Path) -> None:
    """Breaks when torch's compiler, which AdamW imports for a second, is growth by the clock."""
    ran = _watch(tmp_path, _FAILS_BEFORE_A_STEP)
    assert ran.status == 1
    recording = ran.recording()
    assert [mark for mark in recording.marks if mark.what == IMPORTING]
    report = analyse(recording)
    assert report.verdict in (Outcome.UNKNOWN, Outcome.STEADY), report.because
    assert report.forecast is None
