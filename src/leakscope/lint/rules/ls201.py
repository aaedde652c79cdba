"""LS201 in the source: a dataset keeps Python objects, and a loader forks workers over it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.outline import Line, Scope, key_of, last_name, targets_of

_READERS = frozenset({"readlines", "splitlines", "to_dict", "load", "loads"})


def _find(file: File) -> Iterator[Spot]:
    if "DataLoader" not in file.outline.text:
        return
    workers = [_workers(call) for _, call in file.outline.calls_of("DataLoader")]
    if not any(workers):
        return
    for scope in file.outline.classes.values():
        if not is_dataset(scope):
            continue
        methods = {one.name: one for one in scope.children}
        first, read = methods.get("__init__"), methods.get("__getitem__")
        if first is None or read is None:
            continue
        used = {key_of(one) for one in ast.walk(read.node) if isinstance(one, ast.Attribute)}
        for line, key, is_heavy in _records(first):
            if key in used:
                says = f"`self{key}` keeps Python objects; a worker that reads one copies its page"
                sure = is_heavy and any(one == "fixed" for one in workers)
                yield Spot(line.node, says, LIKELY if sure else POSSIBLE)


def is_dataset(scope: Scope) -> bool:
    node = scope.node
    return isinstance(node, ast.ClassDef) and any(
        last_name(base.value if isinstance(base, ast.Subscript) else base).endswith("Dataset")
        for base in node.bases
    )


def _workers(call: ast.Call) -> str:
    """`fixed` for a number, `open` for a name; empty for none or 0."""
    for keyword in call.keywords:
        if keyword.arg == "num_workers":
            if isinstance(keyword.value, ast.Constant):
                return "fixed" if keyword.value.value else ""
            return "open"
    return ""


def _records(first: Scope) -> Iterator[tuple[Line, str, bool]]:
    """Attributes that `__init__` fills with many objects; whether these are surely no arrays."""
    for line in first.lines:
        node = line.node
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in targets_of(node):
                key = key_of(target)
                if key.startswith(".") and (heavy := _makes_records(node.value)) is not None:
                    yield line, key, heavy
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and line.loops:
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr == "append":
                key = key_of(called.value)
                if key.startswith(".") and node.value.args:
                    yield line, key, _is_object(node.value.args[0])


def _makes_records(value: ast.expr) -> bool | None:
    if isinstance(value, ast.ListComp):
        return _is_object(value.elt) if _is_object(value.elt) else None
    if isinstance(value, ast.DictComp):
        return _is_object(value.value)
    if isinstance(value, ast.Call) and last_name(value.func) in _READERS:
        is_json = "json" in ast.unparse(value.func) or last_name(value.func) in (
            "readlines", "splitlines", "to_dict"
        )  # fmt: skip
        return False if is_json else None
    return None


def _is_object(node: ast.expr) -> bool:
    return isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.JoinedStr)


CHECK = Check(
    "LS201",
    "python-objects-in-forked-dataset",
    "workers copy pages of Python objects that the dataset keeps",
    "keep them as one array (NumPy, torch, Arrow) instead of many objects",
    _find,
)
