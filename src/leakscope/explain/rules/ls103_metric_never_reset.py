"""LS103: a metric keeps the values of every batch until it is reset."""

from pathlib import PurePosixPath

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import methods_of, owners

_LIBRARIES = (("torchmetrics",), ("torcheval", "metrics"), ("ignite", "metrics"), ("evaluate",))
"""Folders below `site-packages`; a program may have a folder `evaluate` of its own."""
_METHODS = frozenset({"update", "compute", "reset"})
"""What all of these libraries call it, and who writes a metric of their own after them."""


@rule(
    "LS103",
    weight=Weight.HOLDER,
    fix="call `reset()` on the metric when its value has been computed, at the end of each epoch; "
    "or use one that keeps counts instead of values (for a curve: `thresholds=200`)",
)
def metric_never_reset(case: Case) -> bool:
    """A metric keeps the values of every batch, and is never reset.

    ## Why it leaks
    An exact curve, a rank correlation or a list of detections needs all values at once, so
    `update()` keeps them. `compute()` does not let them go; only `reset()` does.

    ## Example
    ```python
    auroc = MulticlassAUROC(num_classes=10)
    for x, y in batches:
        auroc.update(model(x).detach(), y)
    print(auroc.compute())  # and on with the next epoch
    ```

    ## Use instead
    `auroc.reset()` after `compute()`. Or a metric that counts: `MulticlassAUROC(num_classes=10,
    thresholds=200)` has the same size after any number of batches.

    ## Not this rule when
    The class has no `update`, `compute` and `reset`, and is not of a library of metrics: LS501, or
    LS101 if graphs are kept.
    """
    if case.holding.kind not in ("container", "array"):
        return False
    if any(_is_of_a_library(link.file) for link in case.above if link.kind == "attribute"):
        return True
    return any(methods_of(owner, case.sources) >= _METHODS for owner in owners(case))


def _is_of_a_library(file: str) -> bool:
    parts = PurePosixPath(file).parts
    inside = [n + 1 for n, part in enumerate(parts) if part in ("site-packages", "dist-packages")]
    return any(parts[at : at + len(one)] == one for at in inside[-1:] for one in _LIBRARIES)
