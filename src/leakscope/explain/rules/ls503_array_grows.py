"""LS503: an array or tensor is replaced by a larger one with every step."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS503",
    weight=Weight.CAUSE,
    fix="keep the last rows only, or a buffer of fixed size that is filled round and "
    "round; appending by concatenation also copies everything each time",
)
def array_grows(case: Case) -> bool:
    """An array or tensor is replaced by a larger one with every step.

    ## Why it leaks
    The array is replaced in each step by a larger one. Besides, everything is copied each time:
    twice the memory for a moment, and time that grows with the run.

    ## Example
    ```python
    bank = torch.cat((bank, keys))
    log = np.append(log, row)
    ```

    ## Use instead
    Keep the last rows (`bank[-4096:].clone()`), or fill a buffer of fixed size round and round.

    ## Not this rule when
    The array has gained less than 256 bytes or 0.3 rows per step, or grows in another dimension
    than its first: it is not looked for there. Nor where it is made anew each time, and only
    larger: `x = load(length)` keeps nothing of the `x` before it.
    """
    return case.holding.kind == "array"
