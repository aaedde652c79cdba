"""Whether a statement is part of a hook: a function that the program hands to torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from leakscope.attribute.program import Program, last_name
from leakscope.model import Site

_REGISTERS = re.compile(r"register_\w*hook\w*")
_CALLED = "__call__"


def is_in_hook(sources: Mapping[str, str], statement: Site) -> bool:
    """True where the function around it, or the one that made that function, is registered."""
    if _REGISTERS.search(statement.source or "") and "lambda" in (statement.source or ""):
        return True
    around = (statement.function or "").replace(".<locals>", "").split(".")
    program = Program(sources)
    for given in _registered(program):
        name = last_name(given)
        if isinstance(given, ast.Call):
            # A factory returns the hook; an instance is one itself.
            maker = last_name(given.func)
            if maker in around[:-1] and (maker in program.functions or around[-1] == _CALLED):
                return True
        elif name and name == around[-1]:
            return True
    return False


def _registered(program: Program) -> Iterator[ast.expr]:
    """What is handed to `register_forward_hook` and its kin."""
    for module in program.modules:
        for called, calls in module.calls.items():
            if not _REGISTERS.fullmatch(called):
                continue
            for call in calls:
                for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                    yield _inner(given)


def _inner(given: ast.expr) -> ast.expr:
    """`partial(hook, name)` is the hook."""
    if isinstance(given, ast.Call) and last_name(given.func) == "partial" and given.args:
        return given.args[0]
    return given
