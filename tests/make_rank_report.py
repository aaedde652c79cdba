"""A report on a job of ranks, two of which grow and one of which was started twice."""

from __future__ import annotations

from leakscope.model import BandPoint, Job, Outcome, Rank, Rate, Report
from make_report import FINDING, KIB, MIB, leaking, process

_LEAKING = (3, 9)


def ranks() -> Report:
    """Twelve ranks on two machines."""
    rows = [_rank(number) for number in range(12)]
    rows.insert(4, _rank(3, restart=1))
    job = Job(
        says="Ranks 9, 3 deviate: +3.0 to +3.1 MiB/step, and the 10 other ranks +120 B/step.",
        ranks=tuple(rows),
        deviating=(9, 3),
        band_metric="heap.in_use_bytes",
        band=tuple(_point(step) for step in range(20, 412, 20)),
    )
    processes = [process()]
    processes += [
        process(
            f"rank {n}",
            5000 + n,
            f"{5000 + n}-7",
            last_shared_bytes=90 * MIB,
            last_pss_bytes=930 * MIB,
            last_swap_bytes=12 * MIB if n == 9 else 0,
            rank=n,
            restart=0,
            host=f"node{n // 6}",
            exit_code=None,
        )
        for n in range(12)
    ]
    return leaking(job=job, processes=tuple(processes))


def _rank(number: int, restart: int = 0) -> Rank:
    is_leaking = number in _LEAKING
    value = (3.1 * MIB - (9 - number) * 10 * KIB) if is_leaking else 120.0
    return Rank(
        rank=number,
        restart=restart,
        host=f"node{number // 6}",
        process=f"rank {number}",
        steps=412,
        outcome=Outcome.LEAK if is_leaking else Outcome.STEADY,
        bytes_per_step=Rate(value, 0.98 * value, 1.02 * value),
        last_rss_bytes=1100 * MIB,
        peak_rss_bytes=1301 * MIB,
        fingerprints=(FINDING.fingerprint,) if is_leaking else (),
        deviates=is_leaking and (number != 3 or restart == 1),
    )


def _point(step: int) -> BandPoint:
    top = (700 + 3.1 * step) * MIB
    return BandPoint(float(step), 698.0 * MIB, 702.0 * MIB, 702.0 * MIB + 2 * step * MIB, top, 9)
