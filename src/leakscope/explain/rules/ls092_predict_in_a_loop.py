"""LS092: predict() in a loop, which is blamed more often than it leaks."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import RSS

_FEWEST_CALLS = 20
_MOST = 0.8
"""Of what resident memory grew by; no experiment chose it."""


@harmless("LS092")
def predict_in_a_loop(case: RunCase) -> str | None:
    """`predict()` is called again and again, and memory does not grow with it.

    ## Why it looks like a leak
    TensorFlow 2.0 to 2.3 did leak here, and advice from that time is still passed on. Today
    each call makes a dataset and drops it: memory rises with the first calls and then goes up
    and down. What is dropped lies in cycles, and Python looks for those only when a quarter more
    objects are there: up to a thousand calls of 17 KiB each (TensorFlow 2.21, Keras 3.15).

    ## Example
    ```python
    for request in requests:
        model.predict(request[None], verbose=0)
    ```

    ## What to do
    Nothing for memory's sake. For small inputs `model(x)` or `predict_on_batch` is several
    times as fast. Inputs of ever new shapes do grow: pad them to a few lengths.

    ## Not this rule when
    The verdict is that memory grows, and a full collection at the end did not give it back: then
    the findings say what keeps it.
    """
    calls = case.told("keras", "predict calls")
    if calls is None or calls < _FEWEST_CALLS:
        return None
    if not case.is_steady:
        verdict = case.verdict(RSS)
        if verdict is None or case.collected_at_end < _MOST * verdict.grown_bytes:
            return None
        return (
            f"predict() was called {text.count(calls)} times and leaves garbage in cycles behind, "
            f"which Python comes to late: at the end {text.size(case.collected_at_end)} of it were "
            "collected. That alone is no leak; for small inputs model(x) leaves none."
        )
    return (
        f"predict() was called {text.count(calls)} times and does not leak here; for small inputs "
        "model(x) is several times as fast."
    )
