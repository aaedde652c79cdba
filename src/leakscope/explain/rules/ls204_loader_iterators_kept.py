"""LS204: iterators of data loaders are kept, with their workers, queues and orders."""

from leakscope.explain.rule import Case, Weight, rule

ITERATORS = ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter")


@rule(
    "LS204",
    weight=Weight.HOLDER,
    fix="let go of an iterator when its epoch ends: loop with `for batch in loader`, or store the "
    "one iterator in use under one name that the next one replaces",
)
def loader_iterators_kept(case: Case) -> bool:
    """Iterators of data loaders are kept, each with its workers, queues and order of samples.

    ## Why it leaks
    `iter(loader)` makes an iterator with a shuffled list of all indices and, with
    `num_workers`, its own worker processes, queues and prefetched batches. They are given up when
    the iterator goes. A list or dict that keeps iterators keeps all of that.

    ## Example
    ```python
    self.streams[epoch] = iter(loader)
    ```

    ## Use instead
    `for batch in loader`, which drops the iterator at its end. Where one is needed by name, give
    every new one the same name: `self.stream = iter(loader)`.

    ## Not this rule when
    Batches are kept rather than iterators: LS203, LS501. Or the iterator is one, wrapped in
    `itertools.cycle`: LS205.
    """
    kept = [case.holding.item, *(link.type for link in case.below)]
    if case.holding.kind == "chain":
        # Parts of an iterator become more without a container that does: so do the iterators.
        kept += [link.type for link in case.above]
    return any(one in ITERATORS for one in kept)
