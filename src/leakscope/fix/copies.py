"""A keeping statement in, the edit out that keeps a copy of a part, or an error without frames."""

from __future__ import annotations

import ast
import math
import re

from leakscope.attribute.program import Function, last_name
from leakscope.fix.edits import Change, Wrap, span_of
from leakscope.fix.keeping import Keeping, is_tensor, kept_parts, parts_that_keep, root_of
from leakscope.model import WHOLE, Link

_SMALL = 0.5
"""Of what one item keeps: a view that is more than that is no small part, and a copy of it saves
little."""


_SIZES = {"64": 8, "32": 4, "16": 2, "8": 1}
_SHAPE = re.compile(r"\[([\d, ]*)\] (?:[a-z]+?)(\d+|)$")


def keeps_base(keeping: Keeping) -> bool:
    return _view(keeping) is not None


def _view(keeping: Keeping) -> Link | None:
    """The small thing that keeps a large one: by its base, or by its size beside what it keeps."""
    below = keeping.below
    for index, link in enumerate(below):
        if link.via in (".base", "._base", WHOLE):
            return below[index - 1] if index else keeping.grows
    return None


def keep_copy(keeping: Keeping) -> Change | None:
    """`batch[0]` → `batch[0].clone()`, an array's part → `.copy()`."""
    view = _view(keeping)
    if view is None:
        return None
    field = view.via.removeprefix(".") if view.via.startswith(".") else ""
    parts = parts_that_keep(keeping, field)
    if len(parts) != 1 or not _is_small(keeping, view.type, parts[0]):
        return None
    if _is_written(keeping, parts[0]):
        return None
    suffix = ".clone()" if is_tensor(view.type) else ".copy()"
    return Change(keeping.module.file, (Wrap(span_of(keeping.module, parts[0]), suffix),))


def _is_small(keeping: Keeping, view: str, part: ast.expr) -> bool:
    """The view is a small part of what it keeps, by its shape; else, by how it is cut."""
    size = size_of(view)
    if size is not None and size > _SMALL * keeping.holding.bytes_each:
        return False
    return _is_slice(keeping, part)


def size_of(type_name: str) -> int | None:
    """Bytes of `Tensor [3, 4] float32`; None where the shape was not recorded."""
    match = _SHAPE.search(type_name.partition(", grad_fn")[0])
    if match is None:
        return None
    shape = [int(number) for number in match[1].split(",") if number.strip()]
    return math.prod(shape) * _SIZES.get(match[2], 1)


def _is_slice(keeping: Keeping, part: ast.expr) -> bool:
    if isinstance(part, ast.Subscript):
        return True
    if not isinstance(part, ast.Name):
        return False
    owner = keeping.module.scope_of[part].resolve(part.id)
    values = owner.values.get(part.id, [])
    return bool(values) and all(isinstance(value, ast.Subscript) for value in values)


def _is_written(keeping: Keeping, part: ast.expr) -> bool:
    """Whether the view, or what it was cut from, is changed in place later in the function."""
    module = keeping.module
    function = module.scope_of[keeping.statement].function
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    for name in list(names):
        for value in function.values.get(name, []) if function is not None else []:
            if isinstance(value, ast.Subscript):
                names |= {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    after = keeping.statement.lineno
    body = function.node if function is not None else module.tree
    return any(_writes(node, names) for node in ast.walk(body) if _line(node) > after)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _writes(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.AugAssign(target=target) | ast.Subscript(value=target, ctx=ast.Store()):
            return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(target))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name in names and (
                (method.endswith("_") and not method.startswith("_"))
                or method in {"sort", "fill", "resize", "partition", "put", "itemset"}
            )
        case ast.keyword(arg="out", value=ast.Name(id=name)):
            return name in names
    return False


def keeps_traceback(keeping: Keeping) -> bool:
    return any("traceback" in link.via or link.type == "traceback" for link in keeping.below)


def keep_without_traceback(keeping: Keeping) -> Change | None:
    """`errors.append(error)` → `errors.append(error.with_traceback(None))`."""
    handler = _handler(keeping)
    if handler is None or root_of(keeping) is None:
        return None
    caught = [
        one
        for part in kept_parts(keeping)
        for one in _elements(part)
        if isinstance(one, ast.Name) and one.id == handler.name
    ]
    if len(caught) != 1 or _needs_traceback(handler) or _is_shown_later(keeping):
        return None
    span = span_of(keeping.module, caught[0])
    return Change(keeping.module.file, (Wrap(span, ".with_traceback(None)"),))


_SHOWING = frozenset(
    {"format_exception", "print_exception", "format_tb", "print_tb", "extract_tb", "__traceback__"}
)


def _is_shown_later(keeping: Keeping) -> bool:
    """The program shows tracebacks of what it kept, or raises it after all."""
    holder = last_name(root_of(keeping) or keeping.statement)
    for module in keeping.program.modules:
        if any(name in module.attributes or name in module.calls for name in _SHOWING):
            return True
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Raise) and any(
                last_name(one) == holder
                for one in ast.walk(node)
                if isinstance(one, ast.Name | ast.Attribute)
            ):
                return True
    return False


def _elements(part: ast.expr) -> list[ast.expr]:
    match part:
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return elts
        case ast.Dict(values=values):
            return values
    return [part]


def _handler(keeping: Keeping) -> ast.ExceptHandler | None:
    node: ast.AST | None = keeping.statement
    while node is not None and not isinstance(node, Function):
        if isinstance(node, ast.ExceptHandler):
            return node
        node = keeping.module.parent.get(node)
    return None


def _needs_traceback(handler: ast.ExceptHandler) -> bool:
    """Somebody in the handler raises it on, or prints where it came from."""
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and "exc" in last_name(node.func):
            return True
        if isinstance(node, ast.Attribute) and node.attr in {"__traceback__", "exc_info"}:
            return True
        if isinstance(node, ast.keyword) and node.arg == "exc_info":
            return True
    return False
