"""Read the locals of frames without making the leak we look for.

The collector does not see what a running function holds: `gc.get_referrers` of a local variable's
value is empty on 3.11 to 3.13. It has to be read from the frames, and up to 3.12 reading
`frame.f_locals` leaves a dict in the frame which keeps every local alive until the function
returns, `del` or not. So the dict is emptied again, and frames where that could be noticed
are not read at all: a variable we cannot name costs less than one we change.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from os.path import dirname
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

import msgspec

from leakscope.observe.anatomy import attribute_of, plain

_PACKAGE = dirname(dirname(__file__)) + "/"
_IS_SNAPSHOT = sys.version_info < (3, 13)
"""Up to 3.12 `f_locals` of a function is a dict kept by its frame (PEP 667 ended that)."""

_OPTIMIZED, _NEW_LOCALS = 0x01, 0x02  # of co_flags; `inspect` names them, and costs an import
_STAR_ARGUMENT, _STAR_STAR_ARGUMENT = 0x04, 0x08
_FAST = _OPTIMIZED | _NEW_LOCALS
_SEES_SNAPSHOT = frozenset({"locals", "vars", "eval", "exec", "dir", "f_locals"})
"""Code that says one of these may hold the very dict that we would refresh and empty."""

_REFERENCES_WHEN_ALONE = 3
"""To a snapshot nobody else holds: the frame's, our variable's, and `getrefcount`'s own."""

_NOTHING: Mapping[str, object] = {}


class Local(msgspec.Struct, frozen=True, gc=False):
    """A variable of a running function."""

    name: str
    function: str
    """Qualified name of the function."""
    file: str
    line: int
    """Where the function is at the moment."""
    thread: str
    depth: int
    """How many functions below it on the stack; 0 is the outermost."""
    is_argument: bool = False
    is_free: bool = False
    """True where the variable belongs to an enclosing function."""


class Running(NamedTuple):
    """A frame on a stack. Drop it soon: it keeps its locals alive when its function returns."""

    frame: FrameType
    thread: str
    depth: int


class Locals:
    """`with locals_of(frame) as names:` the variables by name, gone from us when the block ends."""

    __slots__ = ("_frame", "_snapshot")

    def __init__(self, frame: FrameType) -> None:
        self._frame: FrameType | None = frame
        self._snapshot: dict[str, object] | None = None

    def __enter__(self) -> Mapping[str, object]:
        frame, self._frame = self._frame, None
        if frame is None or not _is_readable(frame):
            return _NOTHING
        names: Any = frame.f_locals
        if not _keeps_snapshot(frame):
            # A namespace may be any mapping that the program gave to `exec`.
            is_proxy = frame.f_code.co_flags & _FAST == _FAST
            return names if is_proxy or type(names) is dict else _NOTHING
        if sys.getrefcount(names) <= _REFERENCES_WHEN_ALONE:
            self._snapshot = names
        return names  # type: ignore[no-any-return]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.clear()


def locals_of(frame: FrameType) -> Locals:
    """The variables of a running, suspended or finished frame; none where reading could be seen."""
    return Locals(frame)


def running_frames() -> list[Running]:
    """Every frame on every thread's stack, but none of ours, outermost first."""
    found: list[Running] = []
    for thread, top in _stacks():
        stack = list(_upwards(top))
        stack.reverse()
        found += (Running(frame, thread, depth) for depth, frame in enumerate(stack))
    return [running for running in found if not is_own_code(running.frame.f_code)]


def is_own_code(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)


def _stacks() -> list[tuple[str, FrameType]]:
    tops = sys._current_frames()
    # Our own frame in a variable of ours would be a cycle, and keep what we looked at alive.
    tops.pop(threading.get_ident(), None)
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and is_own_code(caller.f_code):
        caller = caller.f_back
    if caller is not None:
        tops[threading.get_ident()] = caller
    return [(_thread_name(identity), top) for identity, top in tops.items()]


def _upwards(top: FrameType) -> Iterator[FrameType]:
    frame: FrameType | None = top
    while frame is not None:
        yield frame
        frame = frame.f_back


def _thread_name(identity: int) -> str:
    thread = threading._active.get(identity)  # type: ignore[attr-defined]
    return plain(attribute_of(thread, "_name")) or str(identity)


def _is_readable(frame: FrameType) -> bool:
    if not _keeps_snapshot(frame):
        return True
    # A trace function's return copies the snapshot back into the variables: emptied in between,
    # it would unbind them all.
    if frame.f_trace is not None or is_traced():
        return False
    return _SEES_SNAPSHOT.isdisjoint(frame.f_code.co_names) or not _asks_for_locals(frame.f_code)


def _asks_for_locals(code: CodeType) -> bool:
    """Does it use one of those names as a function? `model.eval()` has nothing to do with it."""
    import dis

    return any(
        one.argval in _SEES_SNAPSHOT
        and (one.opname in ("LOAD_GLOBAL", "LOAD_NAME") or one.argval == "f_locals")
        for one in dis.get_instructions(code)
    )


def is_traced() -> bool:
    """Is somebody following this program line by line (a debugger, a profiler, coverage)?"""
    return (
        sys.gettrace() is not None
        or sys.getprofile() is not None
        or threading.gettrace() is not None
        or threading.getprofile() is not None
    )


def _keeps_snapshot(frame: FrameType) -> bool:
    return _IS_SNAPSHOT and frame.f_code.co_flags & _FAST == _FAST


def describe_local(running: Running, name: str) -> Local:
    code = running.frame.f_code
    arguments = code.co_argcount + code.co_kwonlyargcount
    for star in (_STAR_ARGUMENT, _STAR_STAR_ARGUMENT):
        arguments += bool(code.co_flags & star)
    return Local(
        name=name,
        function=code.co_qualname,
        file=code.co_filename,
        line=running.frame.f_lineno or code.co_firstlineno,
        thread=running.thread,
        depth=running.depth,
        is_argument=name in code.co_varnames[:arguments],
        is_free=name in code.co_freevars,
    )
