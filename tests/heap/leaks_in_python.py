"""A program that leaks in many ways at once; it takes a snapshot of itself at three moments.

Run by test_heap_real.py. One step adds 1 to each thing that grows, unless it says otherwise.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import logging.handlers
import sys
import threading
import weakref
from typing import Any

from leakscope.observe.heap.snapshot import Moment, take_snapshot

STEPS = 90
LOOKS = (30, 60, 90)


class Big:
    """Something that is worth a path."""

    def __init__(self) -> None:
        self.body = bytes(1000)


class Trainer:
    registry: list[Any] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.grads: dict[int, Any] = {}

    def log(self) -> None: ...


class Slotted:
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: list[Any] = []


class Node:
    def __init__(self, rest: Any) -> None:
        self.rest = rest
        self.body = bytes(500)


class Detector:
    @functools.cache  # noqa: B019
    def anchors(self, size: int) -> Any:
        return Big()


class Ring:
    def __init__(self) -> None:
        self.me = self
        self.body = bytes(700)


class Feeder(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="feeder", daemon=True)
        self.seen: list[Any] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        self.is_over.wait()


Pair = collections.namedtuple("Pair", "left right")

things: list[Any] = []
by_user: Any = collections.defaultdict(list)
flags: list[bool] = []
trainers = [Trainer() for _ in range(5)]
window: Any = collections.deque(maxlen=5000)
first_holder: list[Any] = []
second_holder: dict[int, Any] = {}
errors: list[Any] = []
streams: list[Any] = []
callbacks: list[Any] = []
partials: list[Any] = []
pairs: list[Any] = []
weak: Any = weakref.WeakKeyDictionary()
alive: list[Any] = []
slotted = Slotted()
local = threading.local()
local.buffer = []
head: Any = None
chain: Any = None
text = b""
cycle = itertools.cycle(Big() for _ in itertools.count())


def remember(size: int, kept: list[Any] = []) -> None:  # noqa: B006
    kept.append(Big())


def make_hook() -> Any:
    seen: list[Any] = []

    def hook() -> None:
        seen.append(Big())

    return hook


hook = make_hook()


def stream() -> Any:
    item = Big()
    yield item


def fails() -> None:
    batch = Big()
    raise ValueError(id(batch))


def step(number: int) -> None:
    global head, chain, text
    things.append(Big())
    by_user[number // 3].append(Big())
    flags.append(True)
    for trainer in trainers:
        trainer.losses.append(number * 1.5)
    Trainer.registry.append(Big())
    window.append(Big())
    shared = Big()
    first_holder.append(shared)
    second_holder[number] = shared
    remember(number)
    hook()
    callbacks.append(Trainer().log)
    partials.append(functools.partial(print, Big()))
    pairs.append(Pair(number, Big()))
    alive.append(Big())
    weak[alive[-1]] = bytearray(600)
    slotted.kept.append(Big())
    local.buffer.append(Big())
    head = Node(head)
    chain = (Big(), chain)
    text += b"x" * 800
    next(cycle)
    try:
        fails()
    except ValueError as error:
        errors.append(error)
    streams.append(stream())
    next(streams[-1])
    Ring()


def main(folder: str) -> None:
    rows: list[Any] = []
    trainer, detector, feeder = Trainer(), Detector(), Feeder()
    feeder.start()
    logger = logging.getLogger("leaks")
    logger.propagate = False
    logger.addHandler(logging.handlers.MemoryHandler(10**6))
    for number in range(1, STEPS + 1):
        step(number)
        rows.append({"loss": Big()})
        trainer.losses.append(Big())
        trainer.grads[number] = Big()
        detector.anchors(number)
        feeder.seen.append(Big())
        logger.error("kept %s", Big())
        temporary = [Big() for _ in range(number * 11 % 37)]
        if number in LOOKS:
            at = LOOKS.index(number) + 1
            take_snapshot(f"{folder}/{at}.heap", Moment("1-1", at, number, "api"), [])
        del temporary
    feeder.is_over.set()


if __name__ == "__main__":
    gc.disable()
    main(sys.argv[1])
