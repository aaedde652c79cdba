"""LS104: a state is carried from step to step with its graph."""

import ast

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import Keeping, assignments, keeping_of

_ARITHMETIC = frozenset({"torch", "functional", "F", "math", "np", "numpy"})
"""`torch.add(total, loss)` is a sum that is written as a call."""
_BUILT_IN = frozenset({"sum", "max", "min"})


@rule(
    "LS104",
    weight=Weight.CAUSE,
    fix="detach the state before the next step uses it: `state = state.detach()`, or each part of "
    "it if it is a tuple; the graph then ends with the step",
)
def state_carried_undetached(case: Case) -> bool:
    """A state is carried on to the next step together with its graph.

    ## Why it leaks
    The state that a recurrent network returns was computed from the one before, and that from the
    one before it. Handed in again as it is, it leads back to the first step, with the saved
    activations of all of them. `retain_graph=True` makes such a loop run instead of failing.

    ## Example
    ```python
    for x in windows:
        y, state = cell(x, state)
    ```

    ## Use instead
    ```python
    for x in windows:
        y, state = cell(x, state)
        state = state.detach()  # an LSTM: tuple(part.detach() for part in state)
    ```

    ## Not this rule when
    The value is added up or averaged: LS102. The source was not recorded, so that nobody can see
    which of the two it is: LS102 too.
    """
    keeping = keeping_of(case) if case.holding.kind == "graph" else None
    return keeping is not None and _is_carried(keeping)


def _is_carried(keeping: Keeping) -> bool:
    """`y, state = cell(x, state)`, or `y, new = cell(x, state)` and then `state = new`."""
    if not isinstance(keeping.statement, ast.Assign | ast.AnnAssign):
        return False
    value = keeping.statement.value
    if value is None:
        return False
    if _is_given(keeping.stored, value):
        return True
    parts = {ast.unparse(node) for node in ast.walk(value) if isinstance(node, ast.Name)}
    return any(
        targets & parts and _is_given(keeping.stored, made)
        for targets, made in assignments(keeping)
    )


def _is_given(names: set[str], value: ast.expr) -> bool:
    """Is one of these an argument of a call that computes the value?"""
    return any(
        ast.unparse(part) in names
        for call in ast.walk(value)
        if isinstance(call, ast.Call) and not _is_arithmetic(call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        for part in ast.walk(argument)
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)
    )


def _is_arithmetic(call: ast.Call) -> bool:
    first = call.func
    while isinstance(first, ast.Attribute):
        first = first.value
    name = first.id if isinstance(first, ast.Name) else ""
    return name in (_ARITHMETIC if isinstance(call.func, ast.Attribute) else _BUILT_IN)
