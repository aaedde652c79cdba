"""What is said after a program was run again and again, with one thing changed each time."""

from __future__ import annotations

from enum import StrEnum

from leakscope.model.noun import Noun
from leakscope.model.reported import Outcome, Rate

BISECTION_SCHEMA = 1


class Cause(StrEnum):
    """What the growth depends on, as far as the experiments show."""

    KEPT = "kept"
    """On nothing that was changed: the program, or a library it uses, keeps it."""
    ALLOCATOR = "allocator"
    CACHE = "cache"
    COLLECTOR = "collector"
    THREADS = "threads"
    WORKERS = "workers"
    STEADY = "steady"
    """There was no growth to explain."""
    UNKNOWN = "unknown"
    """The evidence does not decide."""


class Effect(StrEnum):
    """What became of the growth under one changed factor."""

    REMOVED = "removed"
    REDUCED = "reduced"
    SAME = "same"
    LARGER = "larger"
    UNCLEAR = "unclear"


class Measured(Noun, frozen=True):
    """Rates of the process that grows, in one run."""

    live: Rate | None
    """Memory in use."""
    live_outcome: Outcome | None
    resident: Rate | None
    resident_outcome: Outcome | None
    peak_bytes: int | None = None


class Trial(Noun, frozen=True):
    """One run of the program."""

    factor: str
    """Empty for the program as it is."""
    number: int
    """Of this factor's runs, from 1."""
    seconds: float
    verdict: Outcome
    steps: int
    steps_from: str
    measured: Measured
    recording: str
    trouble: str = ""
    """Why this run cannot be compared with the others; empty if it can."""
    start_method: str = ""


class FactorResult(Noun, frozen=True):
    factor: str
    group: Cause
    """What the growth depends on if this removes it."""
    title: str
    setting: str
    effect: Effect
    live: Rate | None
    resident: Rate | None
    because: str
    runs: int = 1


class LeftOut(Noun, frozen=True):
    """A factor that was not tried, and why."""

    factor: str
    why: str


class Bisection(Noun, frozen=True):
    schema: int
    command: tuple[str, ...]
    cause: Cause
    says: str
    lead: str
    """live or resident: the memory whose growth was followed."""
    baseline: tuple[Measured, ...]
    """The program as it is, run by run."""
    factors: tuple[FactorResult, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float
    kept_by: str = ""
    """The keeping statement that the run as it is found, if it found one."""
