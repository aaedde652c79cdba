"""LS005: the allocator holds freed memory for reuse."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import HELD, IN_USE, RSS
from leakscope.model import Outcome

_HELD_WORTH_SAYING = 32 << 20
_OF_RESIDENT = 0.18
"""Any allocator holds some MiB: it is told of from here on, and if it is a part that is seen. Its
own program has 0.25; programs that free a little of everything had up to 0.13."""


@harmless("LS005", unless=("LS008", "LS009"))
def allocator_holds(case: RunCase) -> str | None:
    """The allocator holds memory that the program has freed, to use it again.

    ## Why it looks like a leak
    `free()` gives memory to the allocator, which gives it back to the system only where a whole
    stretch is free. Resident memory stays at the height of the largest moment, and two machines
    with other allocators or thresholds differ by hundreds of MiB for the same program.

    ## Example
    ```python
    parts = [torch.randn(1000) for _ in range(100_000)]  # many small blocks
    del parts  # free, but still resident
    ```

    ## What to do
    Nothing, if it does not grow: it is used again. `MALLOC_TRIM_THRESHOLD_`, `MALLOC_ARENA_MAX`, or
    jemalloc give back more.

    ## Not this rule when
    What is held grows step by step. Then the verdict says so, with the shape `fragmentation`.
    """
    live, held, resident = case.verdict(IN_USE), case.series(HELD), case.series(RSS)
    if live is None or live.outcome is not Outcome.STEADY or held is None or case.overall.growing():
        return None
    now = held.values[-1]
    if now < _HELD_WORTH_SAYING or now < _OF_RESIDENT * (resident.values[-1] if resident else 0.0):
        return None
    settings = case.run.recording.run.machine.allocator_settings
    said = ", ".join(f"{name}={value}" for name, value in settings.items()) or "no setting changed"
    return (
        f"{case.run.allocator_of(case.lead)} holds {text.size(now)} of freed memory for reuse "
        f"({said}). It is not live and not a leak; how much is held differs between machines with "
        "the allocator, its arenas and its thresholds."
    )
