"""LS206: processes are started and stay; they are the leak themselves."""

from leakscope.attribute.crowd import KIND
from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS206",
    weight=Weight.CAUSE,
    fix="end what you start: `process.join()` or `popen.wait()` when its work is done, `with` for "
    "pools and Popen, or one pool for the whole run instead of a process per step",
)
def processes_pile_up(case: Case) -> bool:
    """Processes are started with the steps and stay alive: they are the leak themselves.

    ## Why it leaks
    A process that is never told to end, or never joined, keeps its memory, its open files and its
    number. Nothing in the main process grows, and each child is steady. There are just more of
    them.

    ## Example
    ```python
    for shard in shards:
        subprocess.Popen(["decode", shard])  # waits for input that never comes, and is never ended
    ```

    ## Use instead
    `with subprocess.Popen(...) as process:`, `process.join()`, `executor.shutdown()`. For many
    small pieces of work, one pool with a fixed number of workers.

    ## Not this rule when
    The number of processes comes to rest, as that of a pool does, or half of them have ended: then
    they come and go.
    """
    return case.holding.kind == KIND
