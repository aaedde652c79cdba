"""LS109: models or optimizers are kept, one after another."""

import ast
from collections.abc import Iterator

from leakscope.attribute.forms import kept_names
from leakscope.attribute.program import last_name
from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import Keeping, assignments, keeping_of

_TENSOR_SHARE = 0.5
"""Of what one item keeps: it is the weights that cost."""
_OPTIMIZER_STATE = (".state", "defaultdict")
"""How an optimizer holds its moments."""


@rule(
    "LS109",
    weight=Weight.HOLDER,
    fix="keep one model at a time: write the others to disk (`torch.save(model.state_dict(), "
    "path)`) and keep their scores and paths, or keep the best one only",
)
def model_or_optimizer_kept(case: Case) -> bool:
    """Whole models, optimizers or their states are kept, one after another.

    ## Why it leaks
    A list of trials, a snapshot at each evaluation, a league of past players: each entry is all
    weights, and with an optimizer three times as much.

    ## Example
    ```python
    snapshots.append(copy.deepcopy(model.state_dict()))
    trials.append({"score": score, "model": model, "optimizer": optimizer})
    ```

    ## Use instead
    `torch.save(model.state_dict(), path)` and a list of paths; or only the best so far, in one
    variable.

    ## Not this rule when
    Single tensors are kept, or entries in which weights are less than half: LS501. Models that
    nothing in Python holds any more: LS105. Models that a cache of a function keeps with its
    arguments: LS502.
    """
    if case.holding.kind != "container" or case.share_of("tensors") <= _TENSOR_SHARE:
        return False
    if any(link.kind == "cache" for link in case.above):
        return False
    types = [case.holding.item, *(link.type for link in case.below)]
    if any(one.startswith("Parameter ") for one in types):
        return True
    if any((link.via, link.type) == _OPTIMIZER_STATE for link in case.below):
        return True
    keeping = keeping_of(case)
    return keeping is not None and any(
        last_name(call.func) == "state_dict" for call in _stored_calls(keeping)
    )


def _stored_calls(keeping: Keeping) -> Iterator[ast.Call]:
    """Calls in the statement that keeps, or in what it keeps a name of."""
    values: list[ast.AST] = [keeping.statement]
    names = kept_names(keeping.statement)
    values += [value for targets, value in assignments(keeping) if targets & names]
    return (node for value in values for node in ast.walk(value) if isinstance(node, ast.Call))
