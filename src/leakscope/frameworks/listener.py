"""What an adapter needs of the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from leakscope.model import Gap, Tally
from leakscope.observe.counter import StepCounter
from leakscope.observe.devices import Door
from leakscope.observe.piles import Piles


class Listener(Protocol):
    """The agent, as a framework's adapter sees it."""

    counters: dict[str, StepCounter]
    kind: str
    steps_from: str
    on_idle: Callable[[], None] | None
    piles: Piles

    def beat(self, source: str) -> None: ...
    def row_before_first_step(self) -> None: ...
    def mark(self, what: str, *, began_ns: int = 0, text: str | None = None) -> None: ...
    def census(self, probe: str, tallies: tuple[Tally, ...]) -> None: ...
    def gap(self, gap: Gap) -> None: ...
    def became(self, kind: str, name: str) -> None: ...
    def met_dataset(self, dataset: Any) -> None: ...
    def met_devices(self, door: Door) -> None: ...
    def met_pool(self, name: str) -> None: ...
