"""The clock's thread: it ticks, and nothing that the program can ask or do shows it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakscope.agent import timer as tickers
from leakscope.agent.timer import Ticker

_LIMIT_S = 30.0


class Counted:
    """A ticker that counts, and stops at so many."""

    def __init__(self, until: int | None = None) -> None:
        self.until = until
        self.count = 0
        self.seen: list[tuple[bool, set[int]]] = []
        self.reached = threading.Semaphore(0)
        self.ticker = Ticker(self.tick, first_s=0.001, slowest_s=0.002)

    def tick(self) -> bool:
        self.count += 1
        self.seen.append((gc.isenabled(), set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))))
        self.reached.release()
        return self.count != self.until

    def wait(self, ticks: int = 1) -> None:
        for _ in range(ticks):
            assert self.reached.acquire(timeout=_LIMIT_S)


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    yield counted
    counted.ticker.stop()


def _tasks() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def test_it_ticks_and_nothing_shows_it(counted: Counted) -> None:
    """Breaks when the thread is in the program's list of threads or changes a setting of it."""

    def visible() -> list[object]:
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        names = [thread.name for thread in threading.enumerate()]
        return [threading.active_count(), names, sys.getswitchinterval(), handlers, mask]

    before, tasks = visible(), _tasks()
    assert counted.ticker.start()
    counted.wait(3)
    assert visible() == before
    assert len(_tasks() - tasks) == 1
    counted.ticker.stop()
    assert visible() == before
    assert not counted.ticker.is_running
    assert gc.isenabled()


def test_in_a_tick_no_signal_and_no_collection(counted: Counted) -> None:
    """Breaks when the program's signals or its finalisers could be run in our thread."""
    counted.ticker.start()
    counted.wait(2)
    is_enabled, mask = counted.seen[0]
    assert not is_enabled
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD} <= mask


def test_program_that_has_collections_off_keeps_them_off(counted: Counted) -> None:
    """Breaks when a tick turns the collector on."""
    gc.disable()
    try:
        counted.ticker.start()
        counted.wait(2)
        counted.ticker.stop()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_ends_when_told_so() -> None:
    """Breaks when a program that steps keeps the thread of one that does not."""
    counted = Counted(until=2)
    counted.ticker.start()
    counted.wait(2)
    counted.ticker.stop()
    assert counted.count == 2


def test_pauses_stretch_to_the_slowest() -> None:
    """Breaks when a long run is ticked as often as a short one."""
    counted = Counted()
    counted.ticker.start()
    counted.wait(20)
    counted.ticker.stop()
    assert counted.ticker._pause_s == 0.002


def test_urgent_ticks_do_not_wait_for_the_pace() -> None:
    """Breaks when a window that is open stays open until the slow clock ticks again."""
    counted = Counted()
    counted.ticker = Ticker(counted.tick, first_s=1000.0, slowest_s=1000.0)
    counted.ticker.is_urgent = True
    counted.ticker.start()
    counted.wait(3)
    counted.ticker.stop()


def test_foreign_threads_are_left_alone(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the clock runs as a greenlet of the program's own loop."""
    monkeypatch.setitem(sys.modules, "gevent", os)
    assert not counted.ticker.start()


def test_no_thread_to_be_had(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a limit on threads reaches the program as an exception."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(tickers, "start_new_thread", refuse)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert not counted.ticker.start()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask


def _run(program: str, python: str = sys.executable) -> str:
    source = str(Path(tickers.__file__).parents[2])
    words = [python, "-W", "error", "-c", textwrap.dedent(program)]
    env = dict(os.environ, PYTHONPATH=source)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


_FORKS = """
    import logging, multiprocessing, os, time
    from leakscope.agent.timer import Ticker

    # Hooks of others that run after ours, as Python code.
    os.register_at_fork(before=lambda: sum(range(99)), after_in_parent=lambda: sum(range(99)))
    ticks = []
    ticker = Ticker(lambda: ticks.append(os.getpid()) or True, first_s=0.001, slowest_s=0.002)
    ticker.start()

    def wait_for_tick():
        count, deadline = len(ticks), time.monotonic() + 30
        while len(ticks) == count:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    os.register_at_fork(before=lambda: sum(range(99)), after_in_parent=lambda: sum(range(99)))
    wait_for_tick()
    for _ in range(30):
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    wait_for_tick()  # it is back
    for _ in range(3):
        process = multiprocessing.get_context("fork").Process(target=wait_for_tick)
        process.start()
        process.join()
        assert process.exitcode == 0  # and in the child, which lives on
    wait_for_tick()
    assert set(ticks) == {os.getpid()}
    print("done")
"""


@pytest.mark.parametrize("version", ["this", "3.12", "3.13"])
def test_forks_see_one_thread(version: str) -> None:
    """Breaks when `fork` warns, hangs, or the clock stands still after it."""
    others = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if version != "this" and not others:
        pytest.skip(f"no Python {version} here")
    assert _run(_FORKS, str(others[0]) if others else sys.executable) == "done\n"


_ELSEWHERE = """
    import os, threading, time
    from leakscope.agent.timer import Ticker

    ticks = []
    ticker = Ticker(lambda: ticks.append(0) or True, first_s=0.001, slowest_s=0.001)
    ticker.start()

    def fork():
        for _ in range(10):
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)

    import warnings
    warnings.simplefilter("ignore")  # the program's own thread is reason enough to warn
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    count, deadline = len(ticks), time.monotonic() + 30
    while len(ticks) == count and time.monotonic() < deadline:
        pass
    print(len(ticks) > count)
"""


def test_fork_in_another_thread() -> None:
    """Breaks when a fork outside the main thread hangs or ends the clock."""
    assert _run(_ELSEWHERE) == "True\n"


_LATE_THREADING = """
    import _thread, sys
    from leakscope.agent.timer import import_threading

    assert "threading" not in sys.modules
    main, done = _thread.get_ident(), _thread.allocate_lock()
    done.acquire()

    def other():
        import_threading(main)
        done.release()

    _thread.start_new_thread(other, ())
    done.acquire()
    import os, threading
    assert threading.current_thread() is threading.main_thread()
    assert threading.main_thread().ident == main
    assert threading.main_thread().native_id == os.getpid()
    assert threading.main_thread().is_alive()
    assert [one.name for one in threading.enumerate()] == ["MainThread"]
    threading.Thread(target=print, args=("thread",)).start()
    child = os.fork() if sys.version_info < (3, 12) else 0
    if child:
        os.waitpid(child, 0)
"""


def test_threading_imported_by_us_knows_the_main_thread() -> None:
    """Breaks when `threading`, first imported in our thread, takes it for the main one."""
    assert _run(_LATE_THREADING).startswith("thread\n")


_EXITS = """
    import sys, threading, time
    from leakscope.agent.timer import Ticker

    Ticker(lambda: sum(range(1000)) > 0, first_s=0.0001, slowest_s=0.0001).start()
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start()
    threading.Thread(target=time.sleep, args=(0.01,)).start()
    print("end")
"""


def test_exit_with_the_clock_running() -> None:
    """Breaks when the end of the interpreter crashes, hangs or prints because of the thread."""
    for _ in range(5):
        assert _run(_EXITS) == "end\n"
