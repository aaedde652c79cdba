"""A case in, what the program's own text says about it out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from leakscope.attribute.program import Module, Program, Scope, last_name
from leakscope.explain.rule import Case


class Keeping(NamedTuple):
    """The statement that keeps, and the function or file it is part of."""

    statement: ast.stmt
    module: Module
    within: ast.AST

    @property
    def calls(self) -> Iterator[ast.Call]:
        """All calls of that function."""
        return (node for node in ast.walk(self.within) if isinstance(node, ast.Call))

    @property
    def stored(self) -> set[str]:
        """What the statement assigns to, as the source has it: `state`, `self.hidden`."""
        if not isinstance(self.statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return set()
        return _targets(self.statement)


def keeping_of(case: Case) -> Keeping | None:
    """None where the keeper is not known, or its file was not recorded."""
    keeper = case.suspect.keeper
    if keeper is None:
        return None
    module = Program(case.sources).file(keeper.file)
    if module is None:
        return None
    statements = (node for node in ast.walk(module.tree) if isinstance(node, ast.stmt))
    around = [one for one in statements if one.lineno <= keeper.line <= (one.end_lineno or 0)]
    if not around:
        return None
    statement = max(around, key=lambda one: one.lineno)
    function = module.scope_of[statement].function
    return Keeping(statement, module, function.node if function else module.tree)


def assignments(keeping: Keeping) -> Iterator[tuple[set[str], ast.expr]]:
    """What the function assigns: the targets of each statement, and its value."""
    for node in ast.walk(keeping.within):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield _targets(node), node.value


def owners(case: Case) -> Iterator[Scope]:
    """The program's own classes on the way to what grows, the nearest first."""
    program = Program(case.sources)
    for link in reversed(case.above):
        module = program.file(link.file)
        if link.kind == "attribute" and link.scope and module is not None:
            owner = program.scope("class", link.scope, module, link.line)
            if owner is not None:
                yield owner


def methods_of(owner: Scope, sources: Mapping[str, str]) -> set[str]:
    """Names of the methods of a class and of those it derives from, as far as they are known."""
    return {
        node.name
        for scope in Program(sources).ancestors(owner)
        if isinstance(scope.node, ast.ClassDef)
        for node in scope.node.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def is_module(owner: Scope, sources: Mapping[str, str]) -> bool:
    """Does the class derive from torch's Module?"""
    return Program(sources).is_derived_from(owner, frozenset({"Module", "LightningModule"}))


def trains(case: Case) -> bool:
    """Was an optimizer seen to step, or does the program ask for gradients itself?"""
    if case.steps_from == "optimizer":
        return True
    modules = Program(case.sources).modules
    return any(
        last_name(call.func) in ("backward", "grad")
        for module in modules
        for calls in module.calls.values()
        for call in calls
    )


def only_runs_forward(case: Case) -> bool:
    """The steps are forwards, and the program, whose text is known, asks for no gradients."""
    return case.steps_from == "forward" and bool(case.sources) and not trains(case)


def has_keyword(call: ast.Call, name: str) -> bool:
    """Is this keyword given, with anything but False?"""
    return any(
        keyword.arg == name
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
        for keyword in call.keywords
    )


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    found, todo = set[str](), list[ast.expr](targets)
    while todo:
        target = todo.pop()
        if isinstance(target, ast.Tuple | ast.List):
            todo += target.elts
        elif isinstance(target, ast.Starred):
            todo.append(target.value)
        else:
            found.add(ast.unparse(target))
    return found
