"""Which lines made native memory that outlived a few steps: a short window of memray.

For growth that no Python object explains: a `malloc` behind ctypes, a C++ extension. memray is
imported when the first window opens, not before.

Costs, in CPU time (memray 1.20, Python 3.11, two cores): the import 55 ms alone and 29 ms in a
program with torch, of which 33 ms is `rich`. `memray._memray` cannot be had without it: it imports
rich itself, and memray's `__init__` imports all of it anyway. Opening takes 3 ms and closing 4 ms
in a plain Python, 26 ms each with torch's libraries mapped, for every symbol table is patched and
patched back. Reading takes 0.3 ms in memray's aggregated format (2 to 3 ms in the other), which is
why it is read here and not right of the wall: the recording stays text that needs no memray to
be read, of the same version, somewhere else.

memray sees calls that go through a library's symbol table. A `malloc` that the program has looked
up itself with ctypes does not, so such pointers take a detour while the window is open (see
observe/allocations/malloc_hook.py). What cffi looks up (`ffi.dlopen(None).malloc`) stays unseen.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from leakscope.model import Frame, Gap, SiteTally
from leakscope.observe.allocations.capture_file import CaptureFile
from leakscope.observe.allocations.malloc_hook import Detours
from leakscope.observe.anatomy import is_of_the_user

_WHAT = "native allocation sites"
_ERROR = 40
_FRAMES, _FRAMES_OF_THE_USER, _DEEPEST = 12, 3, 80
_NEVER_MS = 2**31 - 1
"""memray has a thread that reads the RSS now and then, and writes to stderr if it cannot."""

_LONGEST_EXIT_S, _POLL_S = 0.1, 5e-5
"""How long a fork waits for memray's thread to be gone."""

_MMAP = 14
_PYTHON_ARENA_BYTES = 1 << 20
"""Python's small objects live in mappings of this size (3.10 and newer). Whoever needs the next one
is not who fills it, and Python's own blocks are counted elsewhere."""

_PROFILERS = ("_lsprof", "profile", "yappi", "pyinstrument", "viztracer", "scalene")
"""Each has a profile function for its thread, which only that thread can see."""

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = ("site-packages", "dist-packages")


class NativeWindow:
    """One window at a time; can be opened again after it was closed.

    Nothing here raises: what stands in the way is reported as a gap, each reason once, and the
    window stays closed.
    """

    def __init__(self, directory: str, report: Callable[[Gap], object]) -> None:
        self._directory = directory
        self._report = report
        self._told: set[str] = set()
        self._tracker: Any = None
        self._profile: Any = None
        """memray's own; what shows of it depends on its version."""
        self._file: CaptureFile | None = None
        self._detours = Detours()
        self._is_cut_short = False
        self._is_retired = False
        self._threads: frozenset[str] = frozenset()
        """memray's, by the kernel's number."""
        self._pid = 0

    @property
    def is_open(self) -> bool:
        """False also when it could not be opened, or a fork has ended it."""
        return self._tracker is not None and self._pid == os.getpid()

    def prepare(self) -> None:
        """Import memray, if it may be used here."""
        with suppress(Exception):
            if _why_not() is None:
                _import_memray()
                # What a tracker imports when it begins, and what that fills: typing's caches.
                from memray.reporters.module_tools import get_python_path_info

                get_python_path_info()

    def open(self) -> None:
        """Follow every allocation of every thread from here on."""
        self._forget_if_inherited()
        if self._file is not None or _open_windows or self._is_retired:
            return
        try:
            self._open()
        except Exception as error:  # noqa: BLE001 - whatever memray does, the program goes on
            self._fail(f"{type(error).__name__}: {error}")
            self._drop_file()

    def close(self) -> tuple[SiteTally, ...]:
        """Stop, and say what was allocated since `open` and is alive now: the largest first.

        What the last step made is alive too, and so is a buffer from before the window that grew
        in it (realloc; its whole size counts, once). The caller tells them by their count: a site
        that keeps something at each of n steps has at least n - 1.
        """
        self._forget_if_inherited()
        if self._file is None:
            return ()
        try:
            self._stop()
            if self._is_cut_short:
                if self._pid == os.getpid():
                    self._fail("a fork ended the window; memray's thread must not be there then")
                return ()
            return _read_sites(self._file.path)
        except Exception as error:  # noqa: BLE001 - whatever memray does, the program goes on
            self._fail(f"{type(error).__name__}: {error}")
            return ()
        finally:
            self._drop_file()

    def stop_for_fork(self) -> None:
        """A child must not inherit a tracker, and on Python 3.12 and newer a thread in the parent,
        memray's too, makes `fork` warn. The window is lost."""
        self._is_cut_short = True
        with suppress(Exception):
            self._stop()
            # Joined is not gone: the kernel, and `fork`, count a thread for a moment longer.
            until_s = monotonic() + _LONGEST_EXIT_S
            while self._threads & _tasks() and monotonic() < until_s:
                sleep(_POLL_S)

    def _open(self) -> None:
        if (why_not := _why_not()) is not None:
            self._fail(why_not)
            return
        memray = _import_memray()
        _follow_forks()
        self._is_cut_short = False
        self._pid = os.getpid()
        self._file = CaptureFile(self._directory)
        tracker = memray.Tracker(
            destination=_destination(memray, self._file.path),
            file_format=memray.FileFormat.AGGREGATED_ALLOCATIONS,
            memory_interval_ms=_NEVER_MS,
            follow_fork=False,
            native_traces=False,
        )
        before = _tasks()
        with _signals_blocked(), _name_setter_kept():
            tracker.__enter__()
        self._threads = _tasks() - before
        self._tracker = tracker
        self._profile = sys.getprofile()
        _open_windows.append(self)
        self._file.keep_from_children()
        self._detours.set_up()

    def _stop(self) -> None:
        tracker, self._tracker = self._tracker, None
        if tracker is None or self._file is None:
            return
        if self in _open_windows:
            _open_windows.remove(self)
        self._detours.take_back()
        profile = sys.getprofile()
        with self._file.where_memray_writes():
            tracker.__exit__(None, None, None)
        if profile is not None and profile is not self._profile:
            sys.setprofile(profile)  # set by the program within the window

    def _forget_if_inherited(self) -> None:
        """A fork that none of our hooks has seen, or that came while another thread was opening the
        window. In the child the tracker has no thread to join, and destroying it waits for that
        for ever; a lock of memray may be held for good. So it is left alone, and so is memray."""
        if self._file is None or self._pid == os.getpid() or self._is_cut_short:
            return
        _inherited.append(self._tracker)
        self._tracker = None
        self._is_retired = True
        self._fail("the process was forked while the window was open")
        with suppress(Exception):
            self._detours.take_back()
            _open_windows.clear()
            _take_patches_back()
        self._drop_file()

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.remove()
            self._file = None

    def _fail(self, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            with suppress(Exception):
                self._report(Gap(_WHAT, why))


# ── when to stay away ──


def _why_not() -> str | None:
    """What in this program does not go together with memray."""
    if "memray" in sys.modules and not _is_imported_by_us:
        # Its own Tracker would fail while ours is open.
        return "the program uses memray itself"
    if sys.getprofile() is not None or threading.getprofile() is not None:
        # memray takes the profile function of every thread, and gives back those it knows.
        return "the program has a profile function (sys.setprofile)"
    if get_ident() != threading.main_thread().ident and any(map(sys.modules.get, _PROFILERS)):
        return "the program may be profiling its main thread, which cannot be asked from another"
    if "greenlet" in sys.modules:
        return "memray writes a warning to stderr in programs with greenlets"
    return None


_inherited: list[Any] = []
"""Trackers that must not be destroyed."""

_is_imported_by_us = False
_open_windows: list[NativeWindow] = []
_follows_forks = False


def _import_memray() -> Any:
    global _is_imported_by_us
    random = sys.modules.get("random")
    state = random.getstate() if random is not None else None
    import memray

    if random is not None and state is not None:
        # rich, which it imports, draws a number from the generator that the program has seeded.
        random.setstate(state)
    _is_imported_by_us = True
    with suppress(Exception):
        # It tells of symbols that it has corrected (a Python linked statically), on stderr.
        memray._memray.set_log_level(_ERROR)
    return memray


def _follow_forks() -> None:
    """Once per process: what is registered here cannot be taken back."""
    global _follows_forks
    if not _follows_forks:
        os.register_at_fork(before=stop_windows)
        _follows_forks = True


def _tasks() -> frozenset[str]:
    with suppress(OSError):
        return frozenset(os.listdir("/proc/self/task"))
    return frozenset()


def stop_windows() -> None:
    """Before a fork. The agent calls it too, once its own thread is gone: that may be opening a
    window when the hook here runs."""
    for window in tuple(_open_windows):
        window.stop_for_fork()


# ── memray's surroundings ──


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """memray's thread inherits the mask of this one. With an open mask it would take signals that
    the program blocks in all its own threads in order to wait for them."""
    # Asked first: the call that blocks may raise what a signal's handler raises, when it has.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _name_setter_kept() -> Iterator[None]:
    """memray 1.20 wraps this method (Python 3.14 has it) and leaves the wrapper behind."""
    method = vars(threading.Thread).get("_set_os_name")
    try:
        yield
    finally:
        if method is not None:
            threading.Thread._set_os_name = method  # type: ignore[attr-defined]


def _take_patches_back() -> None:
    """What `Tracker.__exit__` would do to `threading` and to this thread."""
    sys.setprofile(None)
    threading.setprofile(None)
    for name in ("_name", "_ident"):
        if name in vars(threading.Thread):
            delattr(threading.Thread, name)


def _destination(memray: Any, path: str) -> Any:
    # Compressing would make a second file beside this one.
    return memray.FileDestination(path, overwrite=True, compress_on_exit=False)


# ── reading ──


def _read_sites(path: str) -> tuple[SiteTally, ...]:
    memray = sys.modules["memray"]
    is_ours = _ownership(os.path.dirname(os.path.abspath(memray.__file__ or "")) + os.sep)
    totals: dict[tuple[Frame, ...], tuple[int, int]] = {}
    reader = memray.FileReader(path)
    try:
        for record in reader.get_leaked_allocation_records(merge_threads=True):
            if _is_arena(record):
                continue
            stack = record.stack_trace(max_stacks=_DEEPEST)
            if is_ours(stack):
                continue
            frames = tuple(Frame(file, line, function) for function, file, line in _told(stack))
            count, size = totals.get(frames, (0, 0))
            totals[frames] = (count + record.n_allocations, size + record.size)
    finally:
        reader.close()
    sites = [SiteTally(frames, count, size) for frames, (count, size) in totals.items()]
    return tuple(sorted(sites, key=lambda site: (-site.bytes, -site.count)))


def _told(stack: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """The innermost frames; and the program's own, if they lie further out: a variable of Keras is
    made twenty frames below the line that asks for it."""
    inner, outer = stack[:_FRAMES], stack[_FRAMES:]
    if any(is_of_the_user(file) for _, file, _ in inner):
        return inner
    return inner + [frame for frame in outer if is_of_the_user(frame[1])][:_FRAMES_OF_THE_USER]


def _is_arena(record: Any) -> bool:
    per_allocation = _PYTHON_ARENA_BYTES * record.n_allocations
    return bool(record.allocator == _MMAP and record.size == per_allocation)


def _ownership(memrays: str) -> Callable[[list[tuple[str, str, int]]], bool]:
    """Tells whose allocation it was: ours, if from the inside out a frame of leakscope or memray
    comes before one of the program; the standard library works for whoever calls it."""

    def is_ours(stack: list[tuple[str, str, int]]) -> bool:
        for _, file, _ in stack:
            if file.startswith((_OURS, memrays)):
                return True
            if not _is_standard(file):
                return False
        return False

    return is_ours


def _is_standard(file: str) -> bool:
    if file.startswith("<frozen "):
        return True
    return file.startswith(_STANDARD) and not any(part in file for part in _INSTALLED)
