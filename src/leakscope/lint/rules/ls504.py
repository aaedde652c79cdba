"""LS504 in the source: exceptions are put into a container that lasts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.outline import key_of


def _find(file: File) -> Iterator[Spot]:
    for store in file.containers.stores:
        handler = store.line.handler
        if handler is None or not handler.name or handler.name not in _as_it_is(store.value):
            continue
        if not file.containers.outlives(store):
            continue
        is_local = not key_of(store.container).startswith(".")
        if is_local and not any(file.containers.is_step(loop) for loop in store.line.loops):
            continue  # a few attempts, told together at the end
        name = ast.unparse(store.container)
        says = f"`{name}` seems to keep exceptions, and each keeps the frames it came through"
        yield Spot(store.node, says, POSSIBLE if is_local else LIKELY)


def _as_it_is(node: ast.expr) -> set[str]:
    """Names that are kept themselves, not what a call made of them."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Tuple | ast.List):
        return {name for one in node.elts for name in _as_it_is(one)}
    if isinstance(node, ast.Dict):
        return {name for one in node.values for name in _as_it_is(one)}
    return set()


CHECK = Check(
    "LS504",
    "exception-kept-with-traceback",
    "exceptions are kept with their tracebacks, and with them the variables of every frame",
    "keep `str(error)` or `repr(error)`, or `error.with_traceback(None)`",
    _find,
)
