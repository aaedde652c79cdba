"""Things that lead back to themselves."""

from __future__ import annotations


def in_circles(ways: dict[int, list[int]]) -> set[int]:
    """All that lead back to themselves: what two walks in a row, there and back (Kosaraju's), put
    into one set with another. Without recursion: graphs are deeper than Python's stack."""
    finished: list[int] = []
    seen: set[int] = set()
    for start in ways:
        _walk_depth_first(start, ways, seen, finished)
    back: dict[int, list[int]] = {number: [] for number in ways}
    for number, referents in ways.items():
        for referent in referents:
            back[referent].append(number)
    seen = set()
    circles: set[int] = set()
    for start in reversed(finished):
        together: list[int] = []
        _walk_depth_first(start, back, seen, together)
        if len(together) > 1:
            circles.update(together)
    return circles


def _walk_depth_first(
    start: int, ways: dict[int, list[int]], seen: set[int], finished: list[int]
) -> None:
    """Adds what was not seen yet to `finished`, each after all that it leads to."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(ways[start]))]
    while path:
        number, referents = path[-1]
        for referent in referents:
            if referent not in seen:
                seen.add(referent)
                path.append((referent, iter(ways[referent])))
                break
        else:
            finished.append(number)
            path.pop()
