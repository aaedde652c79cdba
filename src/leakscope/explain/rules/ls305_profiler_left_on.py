"""LS305: what a profiler has recorded is kept, or the profiler never ends."""

from leakscope.explain.rule import Case, Weight, rule

RECORDERS = ("torch/profiler/", "torch/autograd/profiler", "/tracemalloc.py", "/cProfile.py")
RECORDED = ("profile", "_KinetoProfile", "FunctionEvent", "_Traces")
"""Profilers of torch, their events, and what a snapshot of tracemalloc has in it."""


@rule(
    "LS305",
    weight=Weight.HOLDER,
    fix="profile a few steps and stop (`torch.profiler.schedule`), and keep a table or an exported "
    "trace (`key_averages().table()`, `export_chrome_trace`) instead of the profiler",
)
def profiler_left_on(case: Case) -> bool:
    """What a profiler has recorded is kept, or the profiler never ends.

    ## Why it leaks
    A profiler records an event for every operator: some hundred a step, each with names, times
    and stacks. They stay as long as the profiler or its list of events is referred to, and as long
    as it records.

    ## Example
    ```python
    with profile() as recorder:
        train_step(batch)
    profiles.append(recorder)
    ```

    ## Use instead
    Keep what you read of it: `recorder.key_averages().table(row_limit=10)`, or a file by
    `export_chrome_trace`. For a long run: `torch.profiler.schedule(wait=100, warmup=1, active=3)`.

    ## Not this rule when
    The profiler's memory is native and not yet handed out: an event that is still in C++ has no
    Python object, and the growth is told as LS601 or not explained.
    """
    kept = (case.holding.item, *(link.type for link in case.below))
    is_recorded = any(one in RECORDED for one in kept)
    return is_recorded or any(part in link.file for link in case.above for part in RECORDERS)
