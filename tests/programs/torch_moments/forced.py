"""Heap looks that a program forces on itself.

Each program of this folder has a `main()` that returns a text, the same in every run, and calls
`look()` at the moment it is about. Run by itself it is the bare program, unless `TORCH_LOOKS` says
how to look: `asked` looks as leakscope does, which asks whether this is a safe moment; `unasked`
looks anyway. `TORCH_LOOKS_FROM` adds looks to those of the program: `timer` by the main thread
between any two of its instructions, `thread` by a thread that looks without a pause.

`python forced.py HOW FROM TIMES NAME...` runs programs in one process, bare and looked at, and
prints what came of each as a line of JSON.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep
from typing import Any

import torch

from leakscope.frameworks import torch_edges
from leakscope.frameworks.torch_edges import TorchEdges
from leakscope.observe.heap.edges import Extras

ROUNDS = int(os.environ.get("TORCH_LOOKS_ROUNDS", "20"))
_TIMER_S = 0.002

torch.set_num_threads(1)


class Looks:
    """The looks of a program, and what they came to."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.taken = 0
        self.refused: Counter[str] = Counter()
        self._looking = threading.Lock()

    def look(self) -> None:
        if self.how and self._looking.acquire(blocking=False):  # one at a time
            try:
                self._look()
            finally:
                self._looking.release()

    def _look(self) -> None:
        edges = TorchEdges(references_of_caller=1)
        if self.how == "asked" and (why := edges.why_not_now()):
            self.refused[why] += 1
            return
        was_on = gc.isenabled()
        gc.disable()
        try:
            found = _instances(edges.wanted())
            extras = Extras()
            edges.read(found, extras)
            del found
        finally:
            if was_on:
                gc.enable()
        self.refused.update(extras.skipped.values())
        self.taken += not extras.skipped


class Unguarded:
    """In place of the turn that a reading takes: other threads go on."""

    is_first = True

    def __enter__(self) -> Unguarded:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def go_on(self) -> None:
        pass


def _instances(wanted: tuple[type, ...]) -> list[Any]:
    """All objects of these types. No other thread may run meanwhile: Python refuses to go on with a
    tuple that it is filling if anybody else refers to it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    try:
        return [one for one in gc.get_objects() if issubclass(type(one), wanted)]
    finally:
        sys.setswitchinterval(before)


current = Looks("")


def look() -> None:
    current.look()


@contextmanager
def looking(how: str, source: str = "") -> Iterator[Looks]:
    """Look in this way for a while."""
    global current
    current = looks = Looks(how)
    if how == "unasked":
        torch_edges._why_not_now = lambda torch: ""
        torch_edges._Turn = Unguarded  # type: ignore[assignment, misc]
    thread, before = None, None
    if how and source == "thread":
        thread = threading.Thread(target=_look_on, args=(looks,), daemon=True)
        thread.start()
    elif how and source == "timer":
        before = signal.signal(signal.SIGALRM, lambda *_: _look_and_go_on(looks))
        signal.setitimer(signal.ITIMER_REAL, _TIMER_S)
    try:
        yield looks
    finally:
        looks.how = ""
        if before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if thread is not None:
            thread.join()


def _look_and_go_on(looks: Looks) -> None:
    began_s = monotonic()
    looks.look()
    if looks.how:
        signal.setitimer(signal.ITIMER_REAL, max(_TIMER_S, monotonic() - began_s))


def _look_on(looks: Looks) -> None:
    while looks.how:
        looks.look()
        sleep(0.0005)


def graph_text(graph: Any) -> str:
    """A TorchScript graph without the number that the names of its types get in each process."""
    return re.sub(r"___torch_mangle_\d+\.", "", str(graph))


def checksum(*values: Any) -> str:
    """Every bit of some tensors and texts."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        else:
            digest.update(str(value).encode())
    return digest.hexdigest()[:16]


def run(main: Callable[[], str]) -> None:
    """Run one of these programs by itself, as its environment says."""
    how, source = os.environ.get("TORCH_LOOKS", ""), os.environ.get("TORCH_LOOKS_FROM", "")
    gc.freeze()  # listing the objects of torch itself would take most of the time
    with looking(how, source) as looks:
        text = main()
    print(text)
    if report := os.environ.get("TORCH_LOOKS_REPORT"):
        with open(report, "a") as file:
            print(f"taken {looks.taken} refused {dict(looks.refused)}", file=file)


def _run_in_turns(looking: Any, times: int, name: str) -> dict[str, Any]:
    main = sys.modules[name].main
    began_s = monotonic()
    bare, said = _run_once(main)
    same, taken, refused, new = 0, 0, Counter[str](), set[str]()
    for _ in range(times):
        with looking() as looks:
            text, said_more = _run_once(main)
        same += text == bare
        new |= said_more - said
        taken += looks.taken
        refused += looks.refused
    return {
        "name": name,
        "seconds": round(monotonic() - began_s, 1),
        "same": same,
        "taken": taken,
        "refused": dict(refused),
        "new_warnings": sorted(new),
    }


def _run_once(main: Callable[[], str]) -> tuple[str, set[str]]:
    """The text of a program, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = main()
    return text, {f"{one.category.__name__}: {one.message}"[:200] for one in caught}


def _run_all(how: str, source: str, times: str, *names: str) -> None:
    for name in names:
        importlib.import_module(name)
    # The programs have imported this file as a module of its own.
    looking = partial(sys.modules["forced"].looking, how, source)
    for name in names:
        gc.freeze()
        print(json.dumps(_run_in_turns(looking, int(times), name)), flush=True)


if __name__ == "__main__":
    _run_all(*sys.argv[1:])
