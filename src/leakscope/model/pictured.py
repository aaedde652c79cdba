"""What is drawn: the course of a run in few enough points for a page, beside the report."""

from __future__ import annotations

from leakscope.model.noun import Noun
from leakscope.model.reported import Report


class Curve(Noun, frozen=True):
    """One counter, on the steps of its panel; None where it was not read."""

    metric: str
    values: tuple[float | None, ...]


class Layer(Noun, frozen=True):
    """One part of the memory of a process; the layers of a panel add up."""

    name: str
    role: str
    """constant, parameters, gradients, optimizer state, python, live, kept, freed or rest: what
    colour it has."""
    values: tuple[float | None, ...]
    """None at steps before the first row of its process and after the last."""
    seen_from: float | None = None
    """First and last step at which it was counted. Before and after it is drawn on at the rate in
    between; None for what was read at every row."""
    seen_to: float | None = None
    fingerprint: str = ""
    """Of the finding it belongs to."""


class Panel(Noun, frozen=True):
    """One process over the steps."""

    process: str
    """As the report names it."""
    steps: tuple[float, ...]
    """Rising. Of many rows the lowest and the highest of each stretch are left."""
    layers: tuple[Layer, ...]
    curves: tuple[Curve, ...]
    rows: int
    """How many rows there were."""


class Span(Noun, frozen=True):
    """A stretch or a point of the axis: a phase, a save, a full collection, a look."""

    process: str
    what: str
    step: float
    to_step: float
    says: str = ""


class Excerpt(Noun, frozen=True):
    """Lines of a file of the program, as it was when the program ran."""

    file: str
    line: int
    first_line: int
    lines: tuple[str, ...]


class Branch(Noun, frozen=True):
    """One node of the tree of what is kept: it keeps all bytes of the branches below it."""

    name: str
    what: str
    bytes: float
    parent: int
    """Index of the branch above; -1 for the root. It is smaller than its own."""
    fingerprint: str = ""
    """Of the finding, at the thing that grows."""


class Picture(Noun, frozen=True):
    """Everything a report draws."""

    panels: tuple[Panel, ...] = ()
    """The process that counts the steps first."""
    left_out: int = 0
    """Processes that have no panel because there were too many."""
    spans: tuple[Span, ...] = ()
    spans_left_out: int = 0
    excerpts: tuple[Excerpt, ...] = ()
    tree: tuple[Branch, ...] = ()
    tree_at_step: float | None = None
    """The step of the look that saw it."""
    sparks: dict[str, tuple[int, ...]] = {}
    """Resident bytes of each process at few, even moments, by its name."""


class Exhibit(Noun, frozen=True):
    """A report and its picture."""

    report: Report
    picture: Picture
