"""The closed sets of words that records and reports use, as enums."""

from __future__ import annotations

from enum import StrEnum


class HoldingKind(StrEnum):
    """What kind of thing keeps more with every step."""

    CONTAINER = "container"
    GRAPH = "graph"
    """An autograd graph that gets longer behind one variable."""
    ARRAY = "array"
    """One array, tensor or string that is larger each time."""
    CHAIN = "chain"
    """Objects that refer to one another: a linked list, a tree."""
    CYCLE = "cycle"
    """Garbage in reference cycles that no collection frees, because the collector is off."""
    GARBAGE = "garbage"
    """Garbage in reference cycles that waits for the next full collection."""
    FROZEN = "frozen"
    GRADIENT_CYCLE = "gradient cycle"
    """Parameters kept alive by their own gradients, whose graph leads back to them."""
    SHARED_PAGES = "shared-pages"
    """Pages that a forked worker copies by reading Python objects."""
    FRAMEWORK_CACHE = "pile"
    """A cache of a framework outside of Python, as the framework counts it."""
    NATIVE = "native"
    """Native memory: a line that allocates and nobody who frees."""
    DEVICE = "device"
    """Device memory that no Python object holds."""
    PROCESSES = "processes"


class LinkKind(StrEnum):
    """How one object on a reference path holds the next."""

    UNKNOWN = ""
    MODULE = "module"
    GLOBAL = "global"
    CLASS = "class"
    ATTRIBUTE = "attribute"
    ITEM = "item"
    LOCAL = "local"
    CLOSURE = "closure"
    DEFAULT = "default"
    BOUND = "bound"
    PARTIAL = "partial"
    GENERATOR = "generator"
    TRACEBACK = "traceback"
    CACHE = "cache"
    THREAD = "thread"
    BASE = "base"
    GRAPH = "graph"
    SAVED = "saved"
    GRADIENT = "gradient"
    NATIVE = "native"
    GARBAGE = "garbage"
    REGISTRY = "registry"
    PAYLOAD = "payload"
    """What is kept, below the thing that grows."""


class StepSource(StrEnum):
    """What counts as a step, the weakest first."""

    TIME = "time"
    """The supervisor's clock, from outside."""
    TICK = "tick"
    """The agent's own timer, in ticks of 10 ms."""
    DATALOADER = "dataloader"
    FETCH = "fetch"
    FORWARD = "forward"
    CALL = "call"
    BATCH = "batch"
    OPTIMIZER = "optimizer"
    API = "api"


CLOCKS = (StepSource.TIME, StepSource.TICK)
"""Sources whose numbers are no steps that the user knows."""
