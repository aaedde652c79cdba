"""What a framework piles up outside of Python, as the framework itself counts it.

Executables of a compiler lie in caches that no collector sees into: there is no container to
measure and no object to weigh. The framework's own count of them, and the lines of the program at
which they were made, is all there is. An adapter offers a counter; looks ask it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from leakscope.model import Frame, Holding, Link, LinkKind, Moment, SiteTally, Tally
from leakscope.observe.anatomy import is_of_the_user

_FRAMES = 4
_FEWEST = 4
_KEPT = 0.5
"""Of what was made again since the beginning, so much must still be there."""
_MOST_SITES = 4
_DEEPEST = 400
_GENERATED = "__autograph_generated_file"
"""TensorFlow runs a rewritten copy of a traced function, in a file that is gone afterwards."""


our_tables: list[Any] = []
"""Tables of adapters that grow with what they note; looks leave them out."""


Making = tuple[str, tuple[Frame, ...]]
"""What the framework calls a thing, and the lines of the program that led to its making."""


class Pile(NamedTuple):
    """Things of one kind that a framework keeps."""

    holder: str
    """Who keeps them, in words."""
    item: str
    alive: int
    """How many there are now."""
    made: dict[Making, int]
    """How many have been made so far."""


class Piles:
    """What adapters offer: piles for a look, counts for a census."""

    def __init__(self) -> None:
        self._readers: list[Callable[[], Pile | None]] = []
        self._novelties: list[Callable[[], int]] = []
        self._censuses: list[tuple[str, Callable[[], tuple[Tally, ...]]]] = []

    def offer(self, read: Callable[[], Pile | None]) -> None:
        self._readers.append(read)

    def offer_census(self, probe: str, read: Callable[[], tuple[Tally, ...]]) -> None:
        self._censuses.append((probe, read))

    def offer_novelty(self, read: Callable[[], int]) -> None:
        """How many different things have been made or compiled so far, each counted once."""
        self._novelties.append(read)

    def novelty(self) -> int:
        """Goes up while a program starts up, and stays where it is when it repeats itself."""
        return sum(read() for read in self._novelties)

    def withdraw(self) -> None:
        self._readers.clear()
        self._censuses.clear()
        self._novelties.clear()

    def read(self) -> list[Pile]:
        piles = (read() for read in self._readers)
        return [pile for pile in piles if pile is not None]

    def censuses(self) -> list[tuple[str, tuple[Tally, ...]]]:
        return [(probe, read()) for probe, read in self._censuses]


class PileWatch:
    """The piles of one process from look to look: numbers and words only."""

    def __init__(self, piles: Piles) -> None:
        self._piles = piles
        self._before: dict[str, tuple[int, Pile]] = {}
        self._is_begun = False

    def forget(self) -> None:
        self._before = {}
        self._is_begun = False

    def begin(self, step: int) -> None:
        """Note how many there are, once the program has started up."""
        if not self._is_begun:
            self._is_begun = True
            self._before = {pile.holder: (step, pile) for pile in self._piles.read()}

    def grown(self, step: int, process: str, at: Moment) -> list[Holding]:
        """Those that have grown since then, by what is made again and again.

        A program that starts up compiles each of its functions once, and memory grows with it; what
        was made only once is no leak."""
        holdings = []
        for pile in self._piles.read():
            since, before = self._before.get(pile.holder, (step, pile))
            again = {
                making: count - max(before.made.get(making, 0), 1)
                for making, count in pile.made.items()
            }
            total = sum(again.values())
            is_kept = pile.alive - before.alive >= _KEPT * total
            if step > since and total >= _FEWEST and is_kept:
                holdings.append(_tell(pile, before, again, (since, step), process, at))
        return holdings


def _tell(
    pile: Pile,
    before: Pile,
    again: dict[Making, int],
    looks: tuple[int, int],
    process: str,
    at: Moment,
) -> Holding:
    most = sorted((making for making in again if again[making] > 0), key=lambda m: -again[m])
    name, _ = most[0]
    sites = [SiteTally(frames, again[name, frames]) for name, frames in most if frames]
    since, step = looks
    had = sum(before.made.get(making, 0) for making in most)
    return Holding(
        at=at,
        process=process,
        kind="pile",
        path=(
            Link(f"{pile.holder} ({name})", "cache", LinkKind.REGISTRY, name),
            Link("[x]", pile.item, "item"),
        ),
        grows_at=0,
        item=pile.item,
        counts=((since, had), (step, had + sum(again[making] for making in most))),
        sites=tuple(sites[:_MOST_SITES]),
        opaque={pile.item: 1.0},
    )


def program_frames() -> tuple[Frame, ...]:
    """The program's own lines on this thread's stack, innermost first."""
    found: list[Frame] = []
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None or len(found) == _FRAMES:
            break
        code = frame.f_code
        if is_of_the_user(code.co_filename) and _GENERATED not in code.co_filename:
            found.append(Frame(code.co_filename, frame.f_lineno, code.co_qualname))
        frame = frame.f_back
    return tuple(found)
