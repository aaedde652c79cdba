"""The noun between growth and rules."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.model import Holding, Link, Site


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
    snapshots: int
    """In how many snapshots it had more than in the one before."""
    is_kept_in_hook: bool = False
    """The keeping statement is part of a function that torch calls as a hook."""
