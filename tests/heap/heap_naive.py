"""The same as the analyzer, in the slowest and plainest way: what its arrays are compared with."""

from __future__ import annotations

from collections import deque
from typing import Any

from leakscope.heap.groups import Groups
from leakscope.heap.merge import NESTED

Graph = dict[int, list[int]]


def shortest(graph: Graph, roots: list[int]) -> dict[int, int]:
    """Number of steps from the nearest root to each node."""
    found = dict.fromkeys(roots, 0)
    queue = deque(roots)
    while queue:
        node = queue.popleft()
        for target in graph[node]:
            if target not in found:
                found[target] = found[node] + 1
                queue.append(target)
    return found


def reachable(graph: Graph, roots: list[int], without: frozenset[int] = frozenset()) -> set[int]:
    """Nodes that can be reached without going through some."""
    found: set[int] = set()
    stack = [root for root in roots if root not in without]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [target for target in graph[node] if target not in without]
    return found


def retained(graph: Graph, roots: list[int], sizes: dict[int, int]) -> dict[int, int]:
    """What each node retains: what cannot be reached without it."""
    everything = reachable(graph, roots)
    found = {}
    for node in everything:
        left = reachable(graph, roots, frozenset({node}))
        found[node] = sum(sizes[one] for one in everything - left)
    return found


def freed_by_a_collection(
    graph: Graph, counts: dict[int, int], tracked: set[int], alive: set[int]
) -> set[int]:
    """What a full collection would free, as CPython does it: take the references between tracked
    objects off, and keep what has some left and all that leads to."""
    left = {node: counts[node] for node in tracked}
    for node in tracked:
        for target in graph[node]:
            if target in left:
                left[target] -= 1
    kept = reachable(graph, [node for node in tracked if left[node] > 0 or node in alive])
    freed = {node for node in tracked if node not in kept}
    # What is not tracked goes when its last reference does.
    references = dict(counts)
    stack = sorted(freed)
    while stack:
        for target in graph[stack.pop()]:
            references[target] -= 1
            if target not in tracked and references[target] == 0 and target not in freed:
                freed.add(target)
                stack.append(target)
    return freed


Step = tuple[str, str]
"""Label and type."""

PLAIN = {"list", "tuple", "dict", "set"}


def merge(tree: dict[int, tuple[int | None, str]], kinds: dict[int, str]) -> dict[int, list[Step]]:
    """The path of each node's group, from its way down a tree: a step that came before on the way
    goes back there. `tree` has (parent, label) in the order of finding."""
    paths: dict[int, list[Step]] = {}
    chains: dict[tuple[Step, ...], list[Step]] = {}
    for node, (parent, label) in tree.items():
        above = paths[parent] if parent is not None else []
        step = (label, kinds[node])
        known = chains.get((*above, step))
        if known is None:
            known = chains[(*above, step)] = _folded(above, step)
            if len(known) <= len(above):
                chains[(*known, step)] = known
        paths[node] = known
    return paths


def _folded(above: list[Step], step: Step) -> list[Step]:
    outer = above[-1][1] if above else ""
    is_nested = step[1] in PLAIN and outer in PLAIN and step[0] in ("item", "key")
    same = [
        at
        for at, one in enumerate(above)
        if one == step and (above[at - 1][1] if at else "") == outer
    ]
    if len(same) >= (NESTED if is_nested else 1):
        return above[: same[0] + 1]
    return [*above, step]


def path_of_group(groups: Groups, group: int, word: Any) -> tuple[Step, ...]:
    """The path of a group as (label, type)."""
    steps: list[Step] = []
    while group > 0:
        role, name = groups.label(group)
        steps.append((word(role, name), groups.kind(group).name))
        group = int(groups.parents[group])
    return tuple(reversed(steps))
