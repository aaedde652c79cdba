"""Heap looks that a program forces on itself.

`TORCH_LOOKS` says how: nothing for none; `asked` looks as leakscope does, after asking whether this is
a safe moment; `unasked` looks anyway. `TORCH_LOOKS_FROM` says where from, beside the places that
call `look()`: `timer` adds looks by the main thread between any two of its instructions, `thread`
a thread that looks without a pause.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import torch

from leakscope.frameworks.torch_edges import TorchEdges
from leakscope.observe.heap.edges import Extras

ROUNDS = int(os.environ.get("TORCH_LOOKS_ROUNDS", "20"))
_TIMER_S = 0.002

torch.set_num_threads(1)
gc.collect()
gc.freeze()  # listing the objects of torch itself would take most of the time


class Looks:
    """What the looks of a program came to."""

    def __init__(self) -> None:
        self.how = ""
        self.taken = 0
        self.refused: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self._is_looking = False

    def look(self) -> None:
        if not self.how or self._is_looking:
            return
        self._is_looking = True
        try:
            self._look()
        finally:
            self._is_looking = False

    def _look(self) -> None:
        edges = TorchEdges(references_of_caller=1)
        if self.how == "asked":
            why = edges.why_not_now()
            if why:
                self.refused[why] += 1
                return
        else:
            edges.why_not_now = lambda: ""  # type: ignore[method-assign]
        wanted = edges.wanted()
        was_on = gc.isenabled()
        gc.disable()
        try:
            found = _instances(wanted)
            extras = Extras()
            edges.read(found, extras)
            del found
        finally:
            if was_on:
                gc.enable()
        self.taken += 1
        self.problems.update(extras.skipped.values())


def _instances(wanted: tuple[type, ...]) -> list[Any]:
    """All objects of these types. No other thread may run meanwhile: Python refuses to go on with a
    tuple that it is filling if anybody else refers to it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    try:
        return [one for one in gc.get_objects() if issubclass(type(one), wanted)]
    finally:
        sys.setswitchinterval(before)


looks = Looks()
look = looks.look


@contextmanager
def looking(how: str, source: str = "") -> Iterator[Looks]:
    """Look in this way for a while."""
    looks.__init__()  # type: ignore[misc]
    looks.how = how
    stop = threading.Event()
    thread = None
    before: Any = None
    if how and source == "thread":
        thread = threading.Thread(target=_look_on, args=(stop,), daemon=True)
        thread.start()
    elif how and source == "timer":
        before = signal.signal(signal.SIGALRM, _look_and_go_on)
        signal.setitimer(signal.ITIMER_REAL, _TIMER_S)
    try:
        yield looks
    finally:
        looks.how = ""
        if before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if thread is not None:
            stop.set()
            thread.join()


def _look_and_go_on(*_: Any) -> None:
    began_s = monotonic()
    look()
    if looks.how:
        signal.setitimer(signal.ITIMER_REAL, max(_TIMER_S, monotonic() - began_s))


def _look_on(stop: threading.Event) -> None:
    while not stop.is_set():
        look()


def checksum(*values: Any) -> str:
    """Every bit of some tensors and texts."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().contiguous().numpy().tobytes()
        digest.update(value if isinstance(value, bytes) else str(value).encode())
    return digest.hexdigest()[:16]


def run(main: Any) -> None:
    """Run one of these programs by itself, as its environment says."""
    how, source = os.environ.get("TORCH_LOOKS", ""), os.environ.get("TORCH_LOOKS_FROM", "")
    with looking(how, source) as its:
        text = main()
    print(text)
    if report := os.environ.get("TORCH_LOOKS_REPORT"):
        with open(report, "a") as file:
            print(f"taken {its.taken} refused {dict(its.refused)} {dict(its.problems)}", file=file)
