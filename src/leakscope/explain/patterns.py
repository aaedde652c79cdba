"""The patterns a suspect can have: their numbers, names and remedies."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.attribute.suspects import Suspect

_GRAPH_SHARE = 0.3
"""Of what one item keeps: from here on the graph is what costs, not the item."""


class Pattern(NamedTuple):
    rule: str
    name: str
    fix: str


GRAPH_KEPT = Pattern(
    "LS101",
    "kept-with-graph",
    "keep the value without its graph: `.detach()`, `.item()` for a number, or compute it under "
    "torch.no_grad()",
)
GRAPH_GROWS = Pattern(
    "LS102",
    "running-sum-with-graph",
    "add up `.detach()`ed values (or `.item()`), and detach a state that is carried to the next "
    "step",
)
GRADIENT_CYCLE = Pattern(
    "LS105",
    "create-graph-cycle",
    "use torch.autograd.grad(…, create_graph=True), which puts no graph into `.grad`, or set the "
    "gradients to None before the model is dropped",
)
COPY_ON_WRITE = Pattern(
    "LS201",
    "python-objects-in-forked-dataset",
    "hold the records in one NumPy array, tensor or bytes buffer instead of Python objects: "
    "reading an object writes its reference count, and the page is copied in every worker",
)
LOADER_CYCLED = Pattern(
    "LS205",
    "iterator-remembers-everything",
    "itertools.cycle and tee keep every element they have passed on: loop over the loader anew "
    "instead (`while True: yield from loader`)",
)
UNBOUNDED = Pattern(
    "LS501",
    "container-grows",
    "remove entries that are done with, bound the container (`deque(maxlen=…)`, an LRU), or write "
    "them out instead of keeping them",
)
ARRAY_GROWS = Pattern(
    "LS503",
    "array-grows",
    "keep the last rows only, or a buffer of fixed size that is filled round and round; appending "
    "by concatenation also copies everything each time",
)
CACHED = Pattern(
    "LS502",
    "lru-cache-keeps-arguments",
    "the cache keeps every argument and result (on a method: `self`, and all it holds); bound it "
    "with maxsize, or cache on the instance or on plain values",
)
EXCEPTION_KEPT = Pattern(
    "LS504",
    "exception-kept-with-traceback",
    "keep `str(error)`, or `error.with_traceback(None)`: a traceback holds the frames, and they "
    "hold their locals",
)
CYCLE = Pattern(
    "LS505",
    "reference-cycle",
    "break the cycle (a weak reference, or no bound method of the object stored on itself), or let "
    "the collector run",
)
VIEW_KEPT = Pattern(
    "LS509",
    "view-keeps-base",
    "keep a copy of the part (`.copy()`, `.clone()`): a view keeps the whole of what it was cut "
    "from",
)
NATIVE = Pattern(
    "LS601",
    "native-memory-kept",
    "no Python object owns this memory: free it where the native code is done with it, or update "
    "the library that makes it",
)


def pattern_of(suspect: Suspect) -> Pattern:
    """What kind of leak it is, by the most telling thing about it."""
    holding = suspect.holding
    if holding.kind == "graph":
        return GRAPH_GROWS
    if holding.kind == "cycle":
        return CYCLE
    if holding.kind == "gradient cycle":
        return GRADIENT_CYCLE
    if holding.kind == "shared-pages":
        return COPY_ON_WRITE
    if holding.kind == "native":
        return NATIVE
    if holding.kind == "array":
        return ARRAY_GROWS
    above = holding.path[: holding.grows_at + 1]
    below = holding.path[holding.grows_at + 1 :]
    if any(link.kind == "cache" for link in above):
        return CACHED
    if any(link.type in ("cycle", "_tee", "_tee_dataobject") for link in above):
        return LOADER_CYCLED
    if any("traceback" in link.via or link.type == "traceback" for link in below):
        return EXCEPTION_KEPT
    parts = holding.parts
    of_graph = parts.get("saved", 0.0) + parts.get("nodes", 0.0)
    if of_graph > _GRAPH_SHARE * sum(parts.values()):
        return GRAPH_KEPT
    if any(link.via in (".base", "._base") for link in below):
        return VIEW_KEPT
    return UNBOUNDED
