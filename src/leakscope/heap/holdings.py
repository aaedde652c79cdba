"""Growing object groups as holdings: what grows, who holds it, and what one item keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakscope.model import Holding, Snapshot


def holdings_of(files: Sequence[Path], headers: Sequence[Snapshot]) -> list[Holding]:
    """What grew over these snapshots of one process, the largest first."""
    return []
