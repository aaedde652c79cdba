"""What was measured line by line, of one function."""

from __future__ import annotations

from leakscope.model.noun import Noun
from leakscope.model.recorded import Gap


class LineRow(Noun, frozen=True, gc=False):
    line: int
    """Where the statement begins."""
    source: str
    calls: int
    """How often the statement was begun."""
    kept_bytes: int | None
    """More in use after the statement than before it, over all calls, less what its variables gave
    back when the function returned."""
    with_calls_bytes: int | None
    """The same, with what watched functions kept that the statement called."""
    peak_bytes: int | None
    """The most that one execution was seen to have in use above where it began."""
    given_back_bytes: int = 0
    """What its variables gave back on return; not in `kept_bytes`."""
    device_kept_bytes: int | None = None
    device_peak_bytes: int | None = None
    is_estimate: bool = False
    """True where only some executions were measured, and the others were counted like them."""


class LineFigures(Noun, frozen=True, gc=False):
    function: str
    file: str
    first_line: int
    calls: int
    rows: tuple[LineRow, ...] = ()
    gaps: tuple[Gap, ...] = ()
