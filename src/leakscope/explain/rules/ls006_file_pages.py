"""LS006: pages of files become resident as they are read."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import FILES, IN_USE, RSS
from leakscope.model import Outcome

_FEWEST_SAMPLES = 3
_RISE_WORTH_SAYING = 4 << 20
"""Code of the libraries is mapped too: 13 to 52 MiB of it became resident with the first steps of
small training runs, and next to nothing later, in the part that is judged."""
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
    files, live, resident = case.series(FILES), case.verdict(IN_USE), case.series(RSS)
    if files is None or resident is None or len(files.values) < _FEWEST_SAMPLES:
        return None
    if live is None or live.outcome is not Outcome.STEADY or case.overall.growing():
        return None
    judged = (live.from_step, files.steps[-1])
    before, after = np.interp(judged, files.steps, files.values)
    first, last = np.interp(judged, resident.steps, resident.values)
    if after - before < max(_RISE_WORTH_SAYING, _OF_THE_RISE * (last - first)):
        return None
    return (
        f"{text.size(after - before)} of mapped files became resident as they were read, from step "
        f"{text.count(round(live.from_step))} on, and live memory did not grow: the kernel takes "
        "these pages back when memory is short."
    )
