"""Stacks in, nearness out: which statement was near when the kept things were made."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from leakscope.attribute.forms import kept_names
from leakscope.attribute.program import Function, Module, Program, Scope
from leakscope.attribute.stores import Store
from leakscope.model import SiteTally


class _Seen(NamedTuple):
    """A line of the user's in the stack of a site."""

    depth: int
    module: Module
    line: int
    function: str
    weight: float
    made: frozenset[str]
    """Variables that the line assigns."""


class Stacks:
    """Where the kept things were made, to tell which statement was near."""

    def __init__(self, program: Program, sites: Sequence[SiteTally]) -> None:
        self._seen: list[_Seen] = []
        self._called: dict[str, tuple[int, float]] = {}
        for tally in sites:
            weight = float(tally.bytes or tally.count)
            for depth, frame in enumerate(tally.frames):
                module = program.file(frame.file)
                if module is not None:
                    name = frame.function.rpartition(".")[2]
                    made = assigned_by(statement_at(module, frame.line))
                    self._seen.append(_Seen(depth, module, frame.line, name, weight, made))
        self._note_callees()

    def _note_callees(self) -> None:
        """`index.add(wave)` beside the line that made `wave`: `add` is near too."""
        for seen in self._seen:
            for called, calls in seen.module.calls.items():
                for call in calls:
                    if _is_in(seen.module.scope_of[call].function, seen):
                        depth, weight = self._called.get(called, (seen.depth, 0.0))
                        best = (min(seen.depth, depth), max(seen.weight, weight))
                        self._called[called] = best

    def nearness(self, store: Store) -> tuple[int, int, float]:
        """(0 on the line, 1 stores what it assigned, 2 in its function, 3 called from there,
        4 nowhere), depth in the stack, bytes."""
        statement = store.module.statement(store.node)
        function = store.module.scope_of[store.node].function
        is_block = isinstance(statement, Function | ast.ClassDef)
        kept = kept_names(store.node if is_block else statement)
        found = [(4, 0, 0.0)]
        for seen in self._seen:
            if seen.module is not store.module:
                continue
            if not is_block and _spans(statement, seen.line):
                found.append((0, seen.depth, seen.weight))
            elif _is_in(function, seen):
                found.append((1 if kept & seen.made else 2, seen.depth, seen.weight))
        if function is not None and function.name in self._called:
            found.append((3, *self._called[function.name]))
        return min(found, key=lambda f: (f[0], f[1], -f[2]))


def _is_in(function: Scope | None, seen: _Seen) -> bool:
    return (
        function is not None and function.name == seen.function and _spans(function.node, seen.line)
    )


def assigned_by(statement: ast.stmt | None) -> frozenset[str]:
    """Variables that a statement assigns."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return frozenset()
    return frozenset(
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _spans(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return bool(first <= line <= (last or first))


def statement_at(module: Module, line: int) -> ast.stmt | None:
    """The innermost statement on a line, unless it could neither make nor hand on anything."""
    around = [
        node for node in ast.walk(module.tree) if isinstance(node, ast.stmt) and _spans(node, line)
    ]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    makes = ast.Call | ast.BinOp | ast.Subscript
    does = innermost and any(isinstance(node, makes) for node in ast.walk(innermost))
    return innermost if does else None
