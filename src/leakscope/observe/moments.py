"""A moment at which all objects may be listed.

`tuple(f(x) for x in …)` fills a tuple that the collector knows already, and Python refuses to go on
(SystemError) if anybody else refers to it when it is done. A thread that is in the middle of one
has a generator on its stack, which a call runs; then we wait until it has gone on. One that a loop
or another generator runs fills no tuple: a server's main thread may be in it all day. In the thread
that looks there is no such danger: our list is gone before it goes on.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from opcode import opmap
from time import sleep
from types import FrameType

_TRIES = 40
_CO_GENERATOR = 0x20
_PAUSE_S = 0.0005
_CACHE = opmap["CACHE"]
_LOOPS = (opmap["FOR_ITER"], opmap["SEND"])


def wait_for_calm() -> None:
    """Return when no other thread is within a generator; raise if that does not come about."""
    for _ in range(_TRIES):
        if not _others_in_generators():
            return
        sleep(_PAUSE_S)
    raise RuntimeError("other threads are in the middle of generators whenever we want to look")


def _others_in_generators() -> bool:
    own = get_ident()
    return any(
        _is_in_generator(frame) for thread, frame in sys._current_frames().items() if thread != own
    )


def _is_in_generator(top: FrameType) -> bool:
    frame: FrameType | None = top
    while frame is not None:
        caller = frame.f_back
        if frame.f_code.co_flags & _CO_GENERATOR and not _is_looping(caller):
            return True
        frame = caller
    return False


def _is_looping(frame: FrameType | None) -> bool:
    """Is it at `for`, or at `yield from`?"""
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] == _CACHE:  # where Python 3.12 is at `yield from`
        at -= 2
    return code[at] in _LOOPS
