"""An iterator that remembers everything in, one that reads its source anew out."""

from __future__ import annotations

import ast

from leakscope.attribute.program import Function, last_name
from leakscope.fix.edits import Change, Edit, Import, Replace, span_of
from leakscope.fix.keeping import Keeping


def remembers_all(keeping: Keeping) -> bool:
    path = keeping.holding.path[: keeping.holding.grows_at + 1]
    return any(link.type == "cycle" for link in path)


_READ_AGAIN = frozenset({"DataLoader", "range", "list", "tuple", "sorted"})


def loop_anew(keeping: Keeping) -> Change | None:
    """`cycle(loader)` → `chain.from_iterable(repeat(loader))`, where that can be read again."""
    module = keeping.module
    for call in ast.walk(keeping.statement):
        if not isinstance(call, ast.Call) or last_name(call.func) != "cycle":
            continue
        if len(call.args) != 1 or not _can_be_read_again(keeping, call.args[0]):
            return None
        text = "\n".join(module.lines)
        given = ast.get_source_segment(text, call.args[0]) or ast.unparse(call.args[0])
        match call.func:
            case ast.Attribute(value=ast.Name(id=owner)):
                code = f"{owner}.chain.from_iterable({owner}.repeat({given}))"
                edits: tuple[Edit, ...] = (Replace(span_of(module, call), code),)
            case ast.Name() if module.scope.imports.get("cycle") == ("itertools", "cycle"):
                code = f"chain.from_iterable(repeat({given}))"
                edits = (
                    Replace(span_of(module, call), code),
                    Import("itertools", "chain"),
                    Import("itertools", "repeat"),
                )
            case _:
                return None
        return Change(module.file, edits)
    return None


def _can_be_read_again(keeping: Keeping, node: ast.expr) -> bool:
    """A data loader or a container, not an iterator that is used up."""
    match node:
        case ast.List() | ast.Tuple() | ast.ListComp():
            return True
        case ast.Call(func=func):
            return last_name(func) in _READ_AGAIN or _has_plain_iter(keeping, last_name(func))
        case ast.Name(id=name):
            owner = keeping.module.scope_of[node].resolve(name)
            values = owner.values.get(name, [])
            return bool(values) and all(
                not isinstance(value, ast.Name) and _can_be_read_again(keeping, value)
                for value in values
            )
    return False


def _has_plain_iter(keeping: Keeping, class_name: str) -> bool:
    """A class of the program whose `__iter__` begins anew: it is a generator."""
    for owner in keeping.program.classes.get(class_name, ()):
        for one in getattr(owner.node, "body", ()):
            if isinstance(one, Function) and one.name == "__iter__":
                return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(one))
    return False
