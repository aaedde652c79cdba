"""What is said about two runs side by side."""

from __future__ import annotations

from enum import StrEnum

from leakscope.model.noun import Noun
from leakscope.model.reported import Outcome, Rate, Shape

COMPARISON_SCHEMA = 1


class Symptom(StrEnum):
    """In what memory two runs differ."""

    LIVE = "live"
    """Memory in use grows faster in one."""
    HELD = "held"
    """The allocator of one holds more freed memory, or ever more of it."""
    RESIDENT = "resident"
    """Resident memory grows faster in one, and neither of the above says why."""
    COPIED = "copied"
    """Workers of one come to own pages that they shared with their parent."""
    WORKERS = "workers"
    """Child processes of one have more memory of their own."""
    PEAK = "peak"


class Likelihood(StrEnum):
    """How well a difference between two machines explains a difference in memory."""

    LIKELY = "likely"
    """A known effect, of this kind, in this direction."""
    POSSIBLE = "possible"
    """A known effect of this kind; its direction is not known, or it is weak."""
    UNLIKELY = "unlikely"
    """A known effect, but on other memory or the other way round."""
    UNKNOWN = "unknown"
    """Nothing is known about it, or there is nothing to explain."""


class Side(Noun, frozen=True):
    """One counter in one of the two runs."""

    outcome: Outcome
    shape: Shape
    bytes_per_step: Rate


class SeriesPair(Noun, frozen=True):
    metric: str
    process: str
    a: Side | None
    b: Side | None
    differs: bool
    """True if the rates are apart by more than their intervals and more than could be missed."""


class FindingPair(Noun, frozen=True):
    fingerprint: str
    rule: str
    name: str
    where: str
    a_bytes_per_step: float | None
    b_bytes_per_step: float | None


class ComparedRun(Noun, frozen=True):
    """One of the two runs in a few numbers."""

    run: str
    host: str
    command: tuple[str, ...]
    verdict: Outcome
    because: str
    steps: int
    steps_from: str
    seconds: float
    peak_bytes: int | None
    held_bytes: int | None
    """Freed memory that the allocator held at the highest point."""
    workers: int
    """Processes beside the main one, helpers left out."""
    workers_private_bytes: int | None
    """What they had for themselves when last seen, all together."""


class Difference(Noun, frozen=True):
    """Something that is not the same on both machines."""

    what: str
    a: str | None
    b: str | None
    likelihood: Likelihood
    because: str
    effect: str = ""
    """A section of docs/machine-effects.md, where an effect is known."""
    remedy: str = ""
    url: str = ""
    also: tuple[str, ...] = ()
    """Further differences that say the same thing."""


class Comparison(Noun, frozen=True):
    schema: int
    a: ComparedRun
    b: ComparedRun
    says: str
    """The answer in a sentence or two."""
    symptoms: tuple[Symptom, ...]
    series: tuple[SeriesPair, ...]
    findings: tuple[FindingPair, ...]
    differences: tuple[Difference, ...]
    """The one that explains most first."""
    notes: tuple[str, ...]
