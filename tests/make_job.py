"""A recording of a job of several ranks, of which one keeps something."""

from __future__ import annotations

from pathlib import Path

from make import GIB, KIB, MIB, Maker, flat, line, wobble


def job(directory: Path, ranks: int = 4, steps: int = 300, leaking: int | None = 2) -> str:
    """Ranks of which one keeps 40 KiB a step."""
    maker = Maker(directory, limit_bytes=64 * GIB).process()
    for rank in range(ranks):
        pid = 100 + rank
        maker.process(
            pid,
            kind="process",
            parent=1,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(ranks),
        )
        shape = line(40 * KIB) if rank == leaking else flat()
        maker.steps(
            steps, pid=pid, in_use=wobble(shape, 3 * KIB), rss=wobble(shape, 64 * KIB)
        ).sample(steps / 2, pid=pid, uss_bytes=50 * MIB, pss_bytes=60 * MIB)
        if rank == leaking:
            maker.looked(20, 60, shape, pid=pid)
            maker.holds("kept", 1.0, 40 * KIB, pid=pid)
            maker.source("kept = []\n\ndef fit():\n    kept.append(x)\n", pid=pid)
    maker.gap("gpu", "there is none").ended(steps)
    return str(directory)
