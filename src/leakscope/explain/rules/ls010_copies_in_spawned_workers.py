"""LS010: every spawned process builds its own copy of what a module holds."""

import os

from leakscope import text
from leakscope.explain.rule import RunCase, harmless

_LEAST = 16 << 20
"""Bytes of all copies together that are worth a word."""
_ANEW = ("spawn", "forkserver")
"""Ways to start a process in which it imports the program's modules again."""


@harmless("LS010")
def copies_in_spawned_workers(case: RunCase) -> str | None:
    """Every spawned worker builds its own copy of what a module of the program holds.

    ## Why it looks like a leak
    Memory rises with each worker that starts, and the sum over all processes is many times what
    the program seems to need. A spawned process begins empty, imports the main module again, and
    runs the statements in it.

    ## Example
    ```python
    TABLE = np.load("table.npy")  # once in every worker of a pool that spawns

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            pool.map(look_up, keys)
    ```

    ## What to do
    Build it under `if __name__ == "__main__"` and hand over what a worker needs; share one copy
    (`np.load(..., mmap_mode="r")`, `multiprocessing.shared_memory`); or start workers by fork,
    which share the pages of their parent until they write to them.

    ## Not this rule when
    Workers are forked: they see the same things in the pages of their parent. Nor when the copies
    grow with the steps: LS202.
    """
    copies: dict[tuple[str, str], dict[str, int]] = {}
    for census in case.run.recording.censuses:
        how = case.run.lineage.started_by(census.process)
        if census.probe == "globals" and how in _ANEW:
            for tally in census.tallies:
                copies.setdefault((tally.role, how), {})[census.process] = tally.bytes
    shared = {name: sizes for name, sizes in copies.items() if len(sizes) > 1}
    if not shared:
        return None
    (name, how), sizes = max(shared.items(), key=lambda one: sum(one[1].values()))
    if sum(sizes.values()) < _LEAST:
        return None
    file, _, variable = name.rpartition(":")
    return (
        f"{len(sizes)} processes started by {how} each hold their own `{variable}` of "
        f"{os.path.basename(file)}: {len(sizes)} × {text.size(max(sizes.values()))}, "
        f"{text.size(sum(sizes.values()))} in all. A process that is started by {how} runs the "
        "module again and builds its own; a forked one would share the pages of its parent until "
        "it writes to them. It happens once for each process; it is not a leak."
    )
