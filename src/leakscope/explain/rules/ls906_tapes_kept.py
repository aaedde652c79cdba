"""LS906: gradient tapes are kept, with all they have recorded."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS906",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="take the gradients, keep those, and drop the tape",
)
def tapes_kept(case: Case) -> bool:
    """Gradient tapes are kept, with all they have recorded.

    ## Why it leaks
    A persistent tape, or one whose `gradient()` was never called, keeps every activation it
    recorded, in C++, for as long as the tape lives. No Python object leads from the tape to
    them.

    ## Example
    ```python
    with tf.GradientTape(persistent=True) as tape:
        loss = model(x)
    self.tapes.append(tape)
    ```

    ## Use instead
    Take the gradients you need, keep those, and drop the tape (`del tape`).

    ## Not this rule when
    The tape is not persistent and its gradient was taken: it holds nothing then.
    """
    return case.holding.opaque.get("GradientTape", 0.0) > 0
