"""LS509: small views are kept, and each keeps the whole of what it was cut from."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS509",
    weight=Weight.ITEM,
    fix="keep a copy of the part (`.copy()`, `.clone()`): a view keeps the whole of "
    "what it was cut from",
)
def view_keeps_base(case: Case) -> bool:
    """Small views are kept, and each keeps the whole of what it was cut from.

    ## Why it leaks
    A slice of an array or tensor is a view: it keeps the whole of what it was cut from.

    ## Example
    ```python
    clips.append(wave[:16000])  # keeps the whole wave
    ```

    ## Use instead
    `wave[:16000].copy()`, for a tensor `.clone()`.

    ## Not this rule when
    The view's base is not the largest part of what one item keeps, or when the view carries a
    graph that costs more than 30 %: LS101.
    """
    return any(link.via in (".base", "._base") for link in case.below)
