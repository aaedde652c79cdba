"""LS006: pages of files become resident as they are read."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import FILES, HELD, IN_USE, RSS
from leakscope.model import Outcome, Series

_FEWEST_SAMPLES = 3
_RISE_WORTH_SAYING = 16 << 20
"""In the part that is judged: at the start the code of the libraries becomes resident."""
_OF_THE_RISE = 0.5
"""Pages of files are the reason if they are so much of what resident memory rose by."""


@harmless("LS006")
def file_pages(case: RunCase) -> str | None:
    """Pages of mapped files become resident as they are read.

    ## Why it looks like a leak
    A file that is mapped (`np.memmap`, `torch.load(mmap=True)`, Arrow, safetensors) is read page by
    page, and each page counts as resident memory from then on. Resident memory rises until the
    whole file has been read once.

    ## Example
    ```python
    tokens = np.memmap("tokens.bin", dtype=np.uint16, mode="r")
    batch = torch.from_numpy(tokens[start : start + 4096].astype(np.int64))
    ```

    ## What to do
    Nothing: the kernel takes such pages back when memory is short, without writing them anywhere.

    ## Not this rule when
    Memory in use rises too: then what was read is kept. Pages that the program has written to
    (`mode="c"`) are its own, and no longer the file's.
    """
    files, live = case.series(FILES), case.verdict(IN_USE)
    if files is None or len(files.values) < _FEWEST_SAMPLES:
        return None
    if live is None or live.outcome is not Outcome.STEADY or case.overall.growing():
        return None
    judged = (live.from_step, files.steps[-1])
    resident = _rise(case.series(RSS), judged)
    held = max(_rise(case.series(HELD), judged), 0.0)
    # Code shared with other processes becomes this one's own when they end, by 10 to 50 MiB; it was
    # resident before. What was read is in both.
    rise = min(_rise(files, judged), resident - held)
    if rise < max(_RISE_WORTH_SAYING, _OF_THE_RISE * resident):
        return None
    return (
        f"{text.size(rise)} of mapped files became resident as they were read, from step "
        f"{text.count(round(live.from_step))} on, and live memory did not grow: the kernel takes "
        "these pages back when memory is short."
    )


def _rise(series: Series | None, between: tuple[float, float]) -> float:
    if series is None:
        return 0.0
    before, after = np.interp(between, series.steps, series.values)
    return float(after - before)
