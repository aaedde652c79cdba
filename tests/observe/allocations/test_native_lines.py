"""A window of memray: what outlives it is found at its line, and the program cannot tell."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leakscope.model import Gap, SiteTally
from leakscope.observe.allocations import native_lines
from leakscope.observe.allocations.native_lines import NativeWindow

memray = pytest.importorskip("memray")

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = (ctypes.c_size_t,)
_libc.free.argtypes = (ctypes.c_void_p,)

_KIB = 1024


class Windows:
    """A window, and the gaps it told."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gaps: list[Gap] = []
        self.window = NativeWindow(str(directory), self.gaps.append)

    def over(self, action: Callable[[], object]) -> tuple[SiteTally, ...]:
        self.window.open()
        try:
            action()
        finally:
            sites = self.window.close()
        return sites


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Windows]:
    # This module has imported memray already; for a program that would mean it uses it.
    monkeypatch.setattr(native_lines, "_is_imported_by_us", True)
    windows = Windows(tmp_path)
    yield windows
    windows.window.close()


def _leak(size: int, times: int) -> None:
    for _ in range(times):
        _libc.malloc(size)  # the line that leaks


def _borrow(size: int, times: int) -> None:
    for _ in range(times):
        _libc.free(_libc.malloc(size))


def _line_of(text: str, function: Callable[..., object]) -> int:
    code = function.__code__
    source = Path(code.co_filename).read_text().splitlines()
    first = code.co_firstlineno
    return next(n for n in range(first, len(source) + 1) if text in source[n - 1])


def _at(sites: tuple[SiteTally, ...], function: str) -> list[SiteTally]:
    return [site for site in sites if site.frames and site.frames[0].function == function]


def test_memory_never_freed_is_found_at_its_line(windows: Windows) -> None:
    """Breaks when the line, the bytes or the count of a native leak is wrong."""

    def work() -> None:
        _leak(300 * _KIB, 4)
        _borrow(500 * _KIB, 4)

    sites = windows.over(work)
    assert windows.gaps == []
    (site,) = _at(sites, "_leak")
    assert site is sites[0]
    assert (site.count, site.bytes) == (4, 4 * 300 * _KIB)
    assert site.frames[0].file == __file__
    assert site.frames[0].line == _line_of("the line that leaks", _leak)
    assert "test_memory_never_freed" in " ".join(frame.function for frame in site.frames)
    assert _at(sites, "_borrow") == []


def test_ctypes_functions_are_as_before(windows: Windows) -> None:
    """Breaks when a detour of malloc outlives the window, or stands beside a realloc."""
    libc = ctypes.CDLL(None)

    def addresses() -> list[int | None]:
        functions = (_libc.malloc, _libc.free, libc.calloc, libc.strdup)
        return [ctypes.cast(function, ctypes.c_void_p).value for function in functions]

    def in_window() -> list[bool]:
        found: list[list[int | None]] = []
        windows.over(lambda: found.append(addresses()))
        return [now == then for now, then in zip(found[0], before, strict=True)]

    before = addresses()
    assert in_window() == [False, False, False, True]
    assert addresses() == before
    reallocate = libc.realloc  # it has no detour, so nothing may have one
    assert in_window() == [True] * 4
    vars(libc).pop("realloc")
    del reallocate
    gc.collect()
    assert windows.gaps == []


def test_stack_is_cut_and_sites_are_sorted(windows: Windows) -> None:
    """Breaks when a deep recursion fills the recording, or the largest site is not first."""

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            _leak(8 * _KIB, 3)

    def work() -> None:
        deep(40)
        _leak(64 * _KIB, 1)

    sites = windows.over(work)
    assert [site.bytes for site in sites] == sorted((s.bytes for s in sites), reverse=True)
    assert max(len(site.frames) for site in sites) == 12
    assert [site.bytes for site in _at(sites, "_leak")] == [64 * _KIB, 24 * _KIB]


def test_own_allocations_are_not_reported(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when what the agent does within the window is charged to the program."""
    kept: list[object] = []

    def remember(window: NativeWindow) -> None:
        kept.append(bytearray(700 * _KIB))

    # As if a function of leakscope had made it, called from the program's line.
    code = remember.__code__.replace(co_filename=native_lines.__file__)
    monkeypatch.setattr(NativeWindow, "remember", remember, raising=False)
    remember.__code__ = code
    sites = windows.over(windows.window.remember)  # type: ignore[attr-defined]
    assert kept
    assert sum(site.bytes for site in sites) < 64 * _KIB
    ours = os.path.dirname(native_lines.__file__)
    assert not [site for site in sites if site.frames and site.frames[0].file.startswith(ours)]


def test_program_code_called_by_us_stays_the_programs() -> None:
    """Breaks when `check(function)` or a finaliser under our frame loses the program's line."""
    is_ours = native_lines._ownership("/lib/memray/")
    here = native_lines.__file__
    assert is_ours([("loads", "<frozen importlib>", 1), ("x", os.__file__, 2), ("open", here, 3)])
    assert is_ours([("__enter__", "/lib/memray/_memray.pyx", 3), ("main", "/home/me/train.py", 4)])
    assert not is_ours([("leak", "/home/me/train.py", 4), ("check", here, 3)])
    assert not is_ours([("x", os.__file__, 2), ("leak", "/home/me/train.py", 4), ("c", here, 3)])
    assert not is_ours([])


def test_a_tracker_of_the_program_is_left_alone(windows: Windows, tmp_path: Path) -> None:
    """Breaks when a program under memray gets an exception, or loses its own tracker."""
    with memray.Tracker(str(tmp_path / "theirs.bin")):
        assert windows.over(lambda: _leak(_KIB, 1)) == ()
        kept = [bytearray(90 * _KIB) for _ in range(2)]
    assert len(kept) == 2
    assert not windows.window.is_open
    assert "profile" in windows.gaps[0].why  # that of their tracker
    reader = memray.FileReader(str(tmp_path / "theirs.bin"))
    try:
        leaked = [r.size for r in reader.get_leaked_allocation_records(merge_threads=True)]
    finally:
        reader.close()
    assert max(leaked) >= 180 * _KIB


def test_profiler_of_another_thread_is_left_alone(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a window that our own thread opens ends a profile of the main thread."""
    monkeypatch.setitem(sys.modules, "_lsprof", os)
    opened: list[bool] = []

    def work() -> None:
        windows.window.open()
        opened.append(windows.window.is_open)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert opened == [False]
    assert "profiling" in windows.gaps[0].why


@pytest.mark.parametrize("reason", ["memray", "profile", "greenlet", "missing"])
def test_each_obstacle_is_a_gap(
    reason: str, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when an obstacle raises, is told at every window, or goes unsaid."""
    said = {
        "memray": "memray itself",
        "profile": "profile",
        "greenlet": "stderr",
        "missing": "memray",
    }
    if reason == "memray":
        monkeypatch.setattr(native_lines, "_is_imported_by_us", False)
    elif reason == "greenlet":
        monkeypatch.setitem(sys.modules, "greenlet", os)
    elif reason == "missing":
        monkeypatch.setitem(sys.modules, "memray", None)
    before = sys.getprofile()
    if reason == "profile":
        sys.setprofile(lambda *_: None)
    try:
        for _ in range(2):
            windows.window.open()
            is_open = windows.window.is_open
            assert windows.window.close() == ()
            assert not is_open
    finally:
        sys.setprofile(before)
    (gap,) = windows.gaps
    assert said[reason] in gap.why


def test_window_leaves_no_trace(windows: Windows) -> None:
    """Breaks when a window leaves a descriptor, a file, a handler, a thread or a patch behind."""

    def state() -> dict[str, object]:
        return {
            "descriptors": sorted(os.listdir("/proc/self/fd")),
            "handlers": {s: signal.getsignal(s) for s in signal.valid_signals()},
            "mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            "tasks": os.listdir("/proc/self/task"),
            "thread": sorted(vars(threading.Thread)),
            "profile": (sys.getprofile(), threading.getprofile()),
            "files": os.listdir(windows.directory),
        }

    windows.over(lambda: None)  # libunwind opens a pipe for good, the first time
    before = state()
    windows.over(lambda: _leak(_KIB, 1))
    assert state() == before
    assert windows.gaps == []


def test_memrays_thread_takes_no_signal(windows: Windows) -> None:
    """Breaks when a signal that the program waits for is delivered to memray's thread."""
    blocked: list[int] = []
    before = set(os.listdir("/proc/self/task"))

    def look() -> None:
        for task in set(os.listdir("/proc/self/task")) - before:
            text = Path(f"/proc/self/task/{task}/status").read_text()
            line = next(one for one in text.splitlines() if one.startswith("SigBlk"))
            blocked.append(int(line.split()[1], 16))

    windows.over(look)
    (mask,) = blocked
    assert all(
        mask >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    )


def test_threads_within_the_window_are_seen(windows: Windows) -> None:
    """Breaks when only the thread that opened the window is followed."""

    def work() -> None:
        thread = threading.Thread(target=_leak, args=(50 * _KIB, 3))
        thread.start()
        thread.join()

    (site,) = _at(windows.over(work), "_leak")
    assert (site.count, site.bytes) == (3, 150 * _KIB)


def test_file_of_the_program_on_memrays_number_is_not_written(
    windows: Windows, tmp_path: Path
) -> None:
    """Breaks when a program that closes every descriptor finds our bytes in its own file."""
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"untouched")

    def take_over() -> None:
        assert windows.window._file is not None
        number = windows.window._file._memrays
        assert number is not None
        descriptor = os.open(theirs, os.O_RDWR)
        os.dup2(descriptor, number)
        os.close(descriptor)
        taken.append(number)

    taken: list[int] = []
    windows.over(take_over)
    assert theirs.read_bytes() == b"untouched"
    assert os.path.samestat(os.fstat(taken[0]), os.stat(theirs))
    os.close(taken[0])


_FORKS = """
    import os, sys, threading
    from leakscope.observe.allocations.native_lines import NativeWindow

    gaps = []
    window = NativeWindow(sys.argv[1], gaps.append)
    for _ in range(2):
        window.open()
        assert window.is_open
        child = os.fork()
        if child == 0:
            assert not window.is_open and window.close() == ()
            threading.Thread(target=print, args=("child works",)).start()
            grown = [bytearray(10_000) for _ in range(100)]
            window.open()
            assert window.is_open
            sites = window.close()
            sys.exit(7)
        assert not window.is_open
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        assert window.close() == ()
    print([gap.why.split(";")[0] for gap in gaps])
"""


def test_fork_within_the_window(tmp_path: Path) -> None:
    """Breaks when a child goes on tracking, dies, hangs, or the fork warns."""
    words = [sys.executable, "-W", "error", "-c", textwrap.dedent(_FORKS), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("child works") == 2
    assert done.stdout.count("child 7") == 2
    assert "['a fork ended the window']" in done.stdout


_SLIPS_THROUGH = """
    import os, sys, threading
    from leakscope.observe.allocations import native_lines

    gaps = []
    window = native_lines.NativeWindow(sys.argv[1], gaps.append)
    window.open()
    native_lines._open_windows.clear()  # as if another thread had opened it after the hook ran
    child = os.fork()
    if child == 0:
        assert not window.is_open and window.close() == ()
        thread = threading.Thread(target=print, args=("child works",))
        thread.start()
        thread.join()
        window.open()
        assert not window.is_open
        print([gap.why for gap in gaps], sys.getprofile(), threading.getprofile(), flush=True)
        sys.exit(7)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    assert window.is_open
    window.close()
    print([gap.why for gap in gaps])
"""


def test_fork_that_none_of_our_hooks_saw(tmp_path: Path) -> None:
    """Breaks when a child waits for ever for memray's thread, which it does not have."""
    words = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(_SLIPS_THROUGH), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = sorted(done.stdout.splitlines())
    why = "['the process was forked while the window was open'] None None"
    assert lines == sorted(["child works", why, "child 7", "[]"])


def test_random_numbers_of_the_program_stay_what_they_were() -> None:
    """Breaks when importing memray draws from the generator that the program has seeded."""
    program = """
        import random
        random.seed(0)
        wanted = [random.Random(0).random() for _ in range(1)]
        from leakscope.observe.allocations import native_lines
        import sys
        assert "memray" not in sys.modules
        native_lines._import_memray()
        assert "memray" in sys.modules
        assert [random.random()] == wanted
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_line_of_the_program_far_out_is_told_with_the_innermost() -> None:
    library = [("make", f"/lib/site-packages/keras/{n}.py", n) for n in range(20)]
    program = [("fit", "/home/me/train.py", 7), ("main", "/home/me/train.py", 9)]
    told = native_lines._told([*library, *program])
    assert told[:12] == library[:12]
    assert told[12:] == program
    near = [*library[:3], *program, *library]
    assert native_lines._told(near) == near[:12]
