"""LS205: an iterator remembers every element that it has passed on."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS205",
    weight=Weight.HOLDER,
    fix="itertools.cycle and tee keep every element they have passed on: loop over the "
    "loader anew instead (`while True: yield from loader`), and let go of the branch of a tee "
    "that is done",
)
def iterator_remembers_everything(case: Case) -> bool:
    """An iterator remembers every element that it has passed on.

    ## Why it leaks
    `itertools.cycle` keeps a copy of each element to repeat it. Around a data loader that is a
    copy of every batch. The lagging end of a `tee` keeps all that the other end has passed.

    ## Example
    ```python
    batches = itertools.cycle(loader)
    ```

    ## Use instead
    ```python
    def forever(loader):
        while True:
            yield from loader
    ```
    Of a tee, keep no name of the branch that is done: a variable of the function that read it is
    gone when the function returns, an attribute is not.

    ## Not this rule when
    A list of your own is filled from the iterator: LS501.
    """
    return any(link.type in ("cycle", "_tee", "_tee_dataobject") for link in case.above)
