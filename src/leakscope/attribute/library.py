"""Where a library holds what grows: the statement of the user's that made it hold one more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from leakscope.attribute.forms import Form, kept_names
from leakscope.attribute.program import Module, Program, last_name
from leakscope.attribute.references import AWAY, HERE
from leakscope.attribute.stacks import assigned_by, statement_at
from leakscope.attribute.stores import Store
from leakscope.model import SiteTally

_VERBS = frozenset(
    {"register", "add", "append", "push", "subscribe", "attach", "connect", "on", "set", "insert"}
)
_SHORTEST_NOUN = 4

# What the standard library and torch call by another name than the one they keep it under.
_BY_ANOTHER_NAME = {
    "_registry": ("finalize", ""),  # weakref.finalize
    "grad": ("backward", "create_graph"),
    "state": ("add_param_group", ""),  # of an optimizer: one entry for each parameter it has
}


def library_calls(program: Program, name: str) -> Iterator[Store]:
    """`x.register_forward_hook(f)` for `_forward_hooks`, `x.addHandler(h)` for `handlers`."""
    known, keyword = _BY_ANOTHER_NAME.get(name, ("", ""))
    wanted = _words(name)
    for module in program.modules:
        for called, calls in module.calls.items():
            distance = 0 if known and called == known else _distance(wanted, _words(called))
            for call in calls if distance is not None else ():
                if called == known and keyword not in {"", *(k.arg for k in call.keywords)}:
                    continue
                value = call.args[0] if call.args else None
                yield Store(Form.LIBRARY, call, module, AWAY + (distance or 0), 0, value=value)


def _words(name: str) -> list[str]:
    """`_forward_hooks` → forward, hook; `addHandler` → add, handler."""
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
    return [part.lower().removesuffix("s") for part in parts]


def _distance(wanted: Sequence[str], called: Sequence[str]) -> int | None:
    """How many words differ between what is kept and what is called; None if it is no such call."""
    if not wanted or not called or called[0] not in _VERBS:
        return None
    noun = wanted[-1]
    if noun not in called[1:] or len(noun) < _SHORTEST_NOUN:
        return None
    return len(set(wanted) ^ set(called[1:]))


def user_frames(program: Program, sites: Sequence[SiteTally]) -> Iterator[Store]:
    """The user's lines that called into the library, the one that made most first."""
    for tally in sorted(sites, key=lambda site: -(site.bytes or site.count)):
        for frame in tally.frames:
            module = program.file(frame.file)
            if module is not None:
                statement = statement_at(module, frame.line)
                if statement is not None:
                    yield from _handed_on(module, statement)
                    yield Store(Form.GIVEN, statement, module, HERE, 0)
                break


def _handed_on(module: Module, made: ast.stmt) -> Iterator[Store]:
    """`x = make()` … `log.debug("%s", x)`: calls that are handed what the line assigned."""
    names = assigned_by(made)
    function = module.scope_of[made].function
    for call in (call for calls in module.calls.values() for call in calls) if names else ():
        is_after = call.lineno > made.lineno and module.scope_of[call].function is function
        is_statement = isinstance(module.parent[call], ast.Expr)
        is_silent = last_name(call.func) not in {"print", "backward"}
        if is_after and is_statement and is_silent and names & kept_names(call):
            yield Store(Form.GIVEN, call, module, HERE, 0)
