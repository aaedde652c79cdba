"""LS003: memory is higher while a checkpoint is written."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE

_REPEATS = 3
"""Checkpoints from which on there is something like a period."""


@harmless("LS003")
def checkpoint_spike(case: RunCase) -> str | None:
    """Memory is higher while a checkpoint is written, and comes back.

    ## Why it looks like a leak
    Saving copies: the state is gathered, moved to the CPU and packed before it reaches the disk.
    Memory goes up with each checkpoint, and a limit that is near is met just then.

    ## Example
    ```python
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)  # the whole model once more, in memory
    path.write_bytes(buffer.getvalue())  # and once more
    ```

    ## What to do
    Nothing, if it fits. Otherwise write to the file itself (`torch.save(state, path)`), or save in
    parts.

    ## Not this rule when
    Memory stays higher after each checkpoint: then what was copied is kept, and the one who keeps
    it is told.
    """
    series = case.series(IN_USE)
    # A checkpoint may be several files, and each is touched when opened and when closed.
    highest: dict[int, int] = {}
    for mark in case.run.recording.marks:
        if mark.what == "save" and mark.process == case.lead and "in_use_bytes" in mark.values:
            step = mark.at.step or 0
            highest[step] = max(highest.get(step, 0), mark.values["in_use_bytes"])
    if not highest or series is None:
        return None
    steps = np.array(list(highest), dtype=np.float64)
    standing = np.interp(steps, series.steps, series.values)
    rise = float(np.median(np.array(list(highest.values())) - standing))
    if rise < case.worth_saying:
        return None
    said = f"{text.plural(len(steps), 'checkpoint')} saved"
    if len(steps) >= _REPEATS:
        said += f", about every {text.count(round(float(np.median(np.diff(steps)))))} steps"
    return (
        f"{said}. Live memory is {text.size(rise)} higher while one is written and comes back: a "
        "transient, not a leak."
    )
