"""LS402: pinned host memory is kept."""

import re

from leakscope.explain.rule import Case, Weight, rule

_MOSTLY = 0.5
_PINS = re.compile(r"pin_memory\s*\(|pin_memory\s*=\s*True")


@rule(
    "LS402",
    weight=Weight.HOLDER,
    fix="keep ordinary memory (`.clone()` of it, or no `pin_memory()` on what is kept), and pin a "
    "few buffers that are used again",
)
def pinned_memory_kept(case: Case) -> bool:
    """Pinned tensors are kept: host memory that the system can neither swap nor move.

    ## Why it leaks
    A device copies from pinned memory without waiting, so batches are pinned on their way. Kept in
    a list they take memory that is not even in malloc's books, in powers of two: a batch of 33 MiB
    takes 64.

    ## Example
    ```python
    seen.append(batch.pin_memory())
    ```

    ## Use instead
    `seen.append(batch)`; pin what is about to be copied, and let it go.

    ## Not this rule when
    What is kept lies on the device, or was never pinned.
    """
    return (
        not case.holding.on_device
        and case.share_of("tensors", "arrays") > _MOSTLY
        and any(_PINS.search(text) for text in case.sources.values())
        and _is_pinned_line(case)
    )


def _is_pinned_line(case: Case) -> bool:
    """The line that makes or keeps it pins."""
    site, keeper = case.suspect.site, case.suspect.keeper
    return any(one is not None and _PINS.search(one.source or "") for one in (site, keeper))
