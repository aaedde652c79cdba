"""LS106 in the source: the last backward of a round keeps its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.outline import Line


def _find(file: File) -> Iterator[Spot]:
    backwards = [
        (line, call)
        for line, call in file.outline.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    ]
    for line, call in backwards:
        if _is_kept(call) and line.loops and not _comes_another(line, backwards):
            says = (
                "no backward after this one in the same round needs the graph, so it may be kept "
                "for nothing; often it hides a state that was not detached"
            )
            yield Spot(call, says, POSSIBLE)


def _is_kept(call: ast.Call) -> bool:
    return any(
        keyword.arg == "retain_graph"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in call.keywords
    )


def _comes_another(line: Line, backwards: list[tuple[Line, ast.Call]]) -> bool:
    """A later backward in the same round, or the same one again in an inner loop."""
    innermost = line.loops[-1]
    if any(
        other is not line and other.order > line.order and innermost in other.loops
        for other, _ in backwards
    ):
        return True
    # An inner loop over several losses of one graph: each but the last needs it.
    return len(line.loops) > 1


CHECK = Check(
    "LS106",
    "graph-retained",
    "a graph is kept after its last backward",
    "call backward() without retain_graph, and detach what is carried to the next round",
    _find,
)
