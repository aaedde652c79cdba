"""References that the collector cannot see, as a framework's adapter reads them.

A tensor's storage, an autograd node and what it has saved are C++ objects: no `tp_traverse` visits
them. An adapter adds them to the snapshot as extra nodes and edges, if this is a moment at which
calling into the framework is harmless.
"""

from __future__ import annotations

from typing import Any, Protocol

from leakscope.record.snapshot_file import EdgeRole, ExtraEdge, ExtraNode


class Extras:
    """What adapters add to one snapshot. Numbers and words only: holds no object of the program."""

    def __init__(self) -> None:
        self.nodes: dict[int, ExtraNode] = {}
        self.edges: list[ExtraEdge] = []
        self.described: dict[int, str] = {}
        self.limits: dict[int, int] = {}
        self.skipped: dict[str, str] = {}
        self.sites: dict[int, tuple[tuple[str, int, str], ...]] = {}
        """By address: the lines (file, line, function) that made an object, innermost first."""
        self.device_addresses: set[int] = set()
        """Where memory on devices begins, as the allocator has it."""

    def add_node(
        self, address: int, type_name: str, size: int, *, part: str, device: str = ""
    ) -> bool:
        """Add a thing that is no object of the collector. False if it is there already."""
        if address in self.nodes:
            return False
        self.nodes[address] = ExtraNode(address, type_name, size, device, part)
        return True

    def add_edge(self, source: int, target: int, role: EdgeRole, name: str = "") -> None:
        self.edges.append(ExtraEdge(source, target, int(role), name))


class EdgeProvider(Protocol):
    """One framework's part in a snapshot."""

    name: str

    def wanted(self) -> tuple[type, ...]:
        """The classes whose instances it asks for; empty while the framework is not loaded."""

    def why_not_now(self) -> str:
        """Why calling into the framework could do harm at this moment; empty if it is safe."""

    def read(self, found: list[Any], extras: Extras) -> None:
        """Add what these instances refer to. Keeps none of them."""
