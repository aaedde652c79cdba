"""What is noted when it is made: how many there were and are, by purpose, without keeping one."""

from __future__ import annotations

from leakscope.observe.origins import Origins


class Graph:
    def __init__(self) -> None:
        self.table: list[int] = []


def test_what_is_dropped_was_made_and_is_not_alive() -> None:
    origins = Origins()
    kept, dropped, of_a_dataset = Graph(), Graph(), Graph()
    for graph in (kept, dropped):
        origins.note(graph, "function")
    origins.note(of_a_dataset, "dataset")
    del dropped, graph
    assert (origins.made_for["function"], origins.alive_for["function"]) == (2, 1)
    assert (origins.made_for["dataset"], origins.alive_for["dataset"]) == (1, 1)
    assert origins.alive == 2
