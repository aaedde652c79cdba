"""LS009: each thread brings an arena of the allocator."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import HELD, IN_USE
from leakscope.model import Outcome, Series

_MORE_THREADS = 3
"""One or two come with torch and its libraries in any run."""
_RISE_WORTH_SAYING = 8 << 20
_AFTERWARDS = 0.8
"""Share of the rise that must have come once the threads had begun to be more."""
_OF_LIVE = 0.25
"""If live memory rose by more than this share of it, the threads keep something."""


@harmless("LS009")
def thread_arenas(case: RunCase) -> str | None:
    """Each new thread brings an arena of the allocator, and what it frees stays there.

    ## Why it looks like a leak
    glibc gives threads arenas of their own, up to eight a core, so that they do not wait for each
    other. Memory that a thread has freed stays in its arena and is not used by another. With every
    thread that begins to work resident memory rises, while nothing more is in use.

    ## Example
    ```python
    with ThreadPoolExecutor(max_workers=32) as pool:
        list(pool.map(decode, images))  # 32 arenas, each as large as its largest moment
    ```

    ## What to do
    Fewer threads, or `MALLOC_ARENA_MAX=2` in the environment. jemalloc shares better.

    ## Not this rule when
    Live memory grows with the threads: each keeps something (a connection, a buffer in
    `threading.local`), or none of them ends.
    """
    live, in_use, held = case.verdict(IN_USE), case.series(IN_USE), case.series(HELD)
    if live is None or in_use is None or held is None or case.overall.growing():
        return None
    if live.outcome is not Outcome.STEADY:
        return None
    steps, counts = case.threads()
    before, most = (int(counts[0]), int(counts.max())) if len(counts) else (0, 0)
    if most - before < _MORE_THREADS:
        return None
    last_before = int(np.argmax(counts > before)) - 1
    # More at the second count already: they may have begun before the first, which comes late in
    # a program of fast steps.
    began = float(steps[last_before]) if last_before else held.steps[0]
    rise = held.values[-1] - held.values[0]
    since = _rise_from(began, held)
    if rise < _RISE_WORTH_SAYING or since < _AFTERWARDS * rise:
        return None
    if _rise_from(began, in_use) > _OF_LIVE * since:
        return None
    return (
        f"Freed memory that {case.run.allocator_of(case.lead)} holds rose by {text.size(rise)} as "
        f"the number of threads went from {before} to {most}, and live memory did not: threads "
        "have arenas of their own. MALLOC_ARENA_MAX=2 keeps it smaller."
    )


def _rise_from(step: float, series: Series) -> float:
    return series.values[-1] - float(np.interp(step, series.steps, series.values))
