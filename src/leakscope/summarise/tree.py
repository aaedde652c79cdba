"""Holdings of the last looks in, one tree of what keeps how much out."""

from __future__ import annotations

from collections.abc import Mapping

from leakscope import text
from leakscope.attribute.suspects import Explained
from leakscope.judge.series import RunSeries
from leakscope.model import Branch, Holding
from leakscope.summarise.peak import roles_of

_PARTS = {
    "saved": "saved for backward",
    "nodes": "nodes of the graph",
    "tensors": "tensors",
    "shared memory": "shared memory of tensors",
    "arrays": "arrays",
    "python": "Python objects",
}
_ROLES = {"parameter": "parameters", "gradient": "gradients", "optimizer state": "optimizer state"}
_SMALLEST = 1.0


class _Tree:
    """Branches by their path, so that what two holders have in common is there once."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self.bytes: list[float] = []
        self.parents: list[int] = []
        self.fingerprints: dict[int, str] = {}
        self._known: dict[tuple[int, str, str], int] = {}

    def under(self, parent: int, name: str, what: str) -> int:
        key = (parent, name, what)
        if key not in self._known:
            self._known[key] = len(self.names)
            self.names.append((name, what))
            self.bytes.append(0.0)
            self.parents.append(parent)
        return self._known[key]

    def add(self, branch: int, size: float) -> None:
        """So many bytes here, and therefore in all that is above."""
        while branch >= 0:
            self.bytes[branch] += size
            branch = self.parents[branch]

    def branches(self) -> tuple[Branch, ...]:
        return tuple(
            Branch(name, what, size, parent, self.fingerprints.get(place, ""))
            for place, ((name, what), size, parent) in enumerate(
                zip(self.names, self.bytes, self.parents, strict=True)
            )
        )


def tree_of(
    run: RunSeries,
    processes: tuple[str, ...],
    names: Mapping[str, str],
    explained: Mapping[str, Explained],
) -> tuple[tuple[Branch, ...], float | None]:
    """Who keeps what at the last snapshot, and at which step; empty if there was none."""
    tree = _Tree()
    root = tree.under(-1, "kept", "at the last snapshot")
    latest: float | None = None
    for process in processes:
        suspects = explained[process].suspects if process in explained else ()
        if not suspects:
            continue
        top = tree.under(root, names.get(process, process), "process")
        for suspect in suspects:
            _add(tree, top, suspect.holding, suspect.fingerprint)
        step = suspects[0].holding.counts[-1][0]
        latest = step if latest is None else latest
        roles = roles_of(run.recording, process)
        if any(roles.values()):
            optimizer = tree.under(top, "optimizer", "what it steps on")
            for role, size in roles.items():
                tree.add(tree.under(optimizer, _ROLES.get(role, role), ""), float(size))
    if latest is None or not tree.bytes[root]:
        return (), None
    return tree.branches(), latest


def _add(tree: _Tree, top: int, holding: Holding, fingerprint: str) -> None:
    count = holding.counts[-1][1]
    size = count * holding.bytes_each
    if size < _SMALLEST:
        return
    path = holding.path[: holding.grows_at + 2]
    branch = top
    for place, link in enumerate(path):
        is_item = place == holding.grows_at + 1
        what = f"{text.count(count)} × {link.type}" if is_item else link.type
        branch = tree.under(branch, link.via, what)
        if place == holding.grows_at:
            tree.fingerprints[branch] = fingerprint
    deeper = " ".join(link.via for link in holding.path[holding.grows_at + 2 :])
    whole = sum(holding.parts.values()) or 1.0
    parts = {part: share for part, share in holding.parts.items() if share > 0}
    if len(parts) < 2 and not deeper:
        tree.add(branch, size)
        return
    for part, share in parts.items():
        what = deeper if part in ("saved", "nodes") else ""
        leaf = tree.under(branch, _PARTS.get(part, part), what)
        tree.add(leaf, size * share / whole)
