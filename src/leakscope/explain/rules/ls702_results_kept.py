"""LS702: tensors of every forward pass are kept in a run that trains nothing."""

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import only_runs_forward

_TENSOR_SHARE = 0.5
_RESULTS = frozenset({"Tensor", "ndarray", "tuple", "list", "dict"})
"""Types of an item: what is kept in another object is not known to be a result."""


@rule(
    "LS702",
    weight=Weight.KIND,
    fix="hand each result on as it comes (write it to disk, return it, send it), and keep at most "
    "a number or a path of it",
)
def results_kept(case: Case) -> bool:
    """Tensors of every forward pass are kept, in a run that trains nothing.

    ## Why it leaks
    Predictions, embeddings or attention maps are collected to be written at the end. With the
    number of requests so grows what is collected, until it does not fit.

    ## Example
    ```python
    with torch.inference_mode():
        for x in batches:
            embeddings.append(model(x))
    torch.save(embeddings, path)
    ```

    ## Use instead
    Write in parts while the run goes on: one file for every thousand batches, or an array on disk
    (`np.memmap`) that is filled row by row. Of what is only looked at, keep a number.

    ## Not this rule when
    Something trains. Results carry graphs: LS701. Entries of a dict that live as long as a session:
    LS703. A deque is meant to hold the last ones only, and lacks its `maxlen`: LS501.
    """
    return (
        case.holding.kind == "container"
        and case.above[-1].type != "deque"
        and case.holding.item.split(" ", 1)[0] in _RESULTS
        and case.share_of("tensors", "arrays") > _TENSOR_SHARE
        and only_runs_forward(case)
    )
