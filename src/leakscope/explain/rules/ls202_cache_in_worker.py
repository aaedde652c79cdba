"""LS202: a container grows inside a worker process, in every one of them."""

from leakscope.explain.rule import Case, Weight, rule

POOLS = ("concurrent/futures/process.py", "multiprocessing/pool.py")
"""Files of the standard library whose frames are in the stacks of a pool's worker."""


@rule(
    "LS202",
    weight=Weight.KIND,
    fix="every worker process has its own copy of this container: bound it "
    "(`lru_cache(maxsize=…)`), drop entries when a sample has been returned, or keep them in the "
    "main process",
)
def cache_in_worker(case: Case) -> bool:
    """A container grows inside a data loader's or a pool's worker process.

    ## Why it leaks
    A worker has its own copy of the data set and of every module. What it adds to them stays in
    the worker and is seen by nobody else: a list of samples served, a cache that rarely hits
    because each worker meets other samples. It grows once in every worker.

    ## Example
    ```python
    class Scans(Dataset):
        def __getitem__(self, index):
            scan = read(index)
            self.cache[index] = scan  # in the worker's copy of the data set
            return scan
    ```

    ## Use instead
    No cache, or one with a bound (`lru_cache(maxsize=…)`). Fill a cache in the main process before
    the workers start, as one array or tensor. Workers that are started anew in each epoch
    (`persistent_workers=False`, `maxtasksperchild=…`) forget what they had.

    ## Not this rule when
    What one item keeps, or who holds it, has a number of its own: a view (LS509), an `lru_cache`
    (LS502), a thread's own list (LS510). Nor in a process that trains by itself, such as a rank.
    """
    is_pool = any(
        frame.file.endswith(POOLS) for site in case.holding.sites for frame in site.frames
    )
    is_worker = case.process_kind == "worker" or (case.process_kind == "child" and is_pool)
    return is_worker and case.holding.kind in ("container", "chain")
