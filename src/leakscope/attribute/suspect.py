"""The noun between growth and rules."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.model import Holding, Link, Site

_ATTRIBUTES = "__dict__"
"""Of an object that is kept: no table that somebody fills."""


class Suspect(NamedTuple):
    """One holder that keeps more with every step."""

    holding: Holding
    share: float
    """Of the growth of its process."""
    count_per_step: float
    site: Site | None
    keeper: Site | None
    named: Link | None
    fingerprint: str
    is_bounded: str
    """Why it may stop by itself; empty if nothing says so."""
    looks: int
    """At how many looks in a row it had grown."""
    is_kept_in_hook: bool = False
    """The keeping statement is part of a function that torch calls as a hook."""
    later: tuple[tuple[int, int], ...] = ()
    """(step, how many), read by its name after the last look."""
    weights: tuple[tuple[int, int], ...] = ()
    """(step, bytes of each of its newest), likewise."""


def topmost(suspects: list[Suspect]) -> list[Suspect]:
    """Without those that are inside of what another one keeps more of: a table that gets requests
    is the finding, and that two of them got an image in the meantime is a part of it."""
    kept: list[Suspect] = []
    for suspect in sorted(suspects, key=lambda one: -one.share):
        above = next((one for one in kept if _is_inside(suspect.holding, one.holding)), None)
        if above is None:
            kept.append(suspect)
        else:
            kept[kept.index(above)] = above._replace(share=above.share + suspect.share)
    return kept


def _is_inside(holding: Holding, other: Holding) -> bool:
    above, path = other.path[: other.grows_at + 1], holding.path[: holding.grows_at + 1]
    # A path that ends at a name of its own is another thing that the program keeps there.
    is_below = len(path) > len(above) and all(
        link.name in ("", _ATTRIBUTES) for link in path[len(above) :]
    )
    return is_below and [_step(link) for link in path[: len(above)]] == [*map(_step, above)]


def _step(link: Link) -> tuple[str, str]:
    return link.via, link.type
