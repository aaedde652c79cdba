"""When the limit is reached if growth goes on as judged: the host's, or that of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leakscope import text
from leakscope.judge.axis import Axis
from leakscope.judge.overall import Overall
from leakscope.judge.series import RSS, USS
from leakscope.model import Forecast, Outcome, Rate, Verdict


class MemoryNow(NamedTuple):
    """A limit, and how far it is used at the end of the record."""

    limit_bytes: int
    limit_from: str
    used_bytes: int


def forecast(
    overall: Overall,
    host: MemoryNow | None,
    devices: Mapping[tuple[str, str], MemoryNow],
    axis: Axis,
) -> Forecast | None:
    """The limit that is met first; None for a run that does not grow. `devices` are by process and
    device."""
    growing = overall.growing()
    found = []
    on_host = [account for account in growing if account.device is None]
    if host is not None and on_host:
        # The kernel kills for resident memory: what is live and what the allocator holds beside it.
        rates = [_resident_rate(account.verdict, account.verdicts) for account in on_host]
        found.append(_ahead(rates, host, axis))
    for account in growing:
        now = devices.get((account.process, account.device or ""))
        if now is not None:
            found.append(_ahead([account.verdict.bytes_per_step], now, axis))
    ahead = [one for one in found if one is not None]
    return min(ahead, key=lambda one: one.steps_left.value, default=None)


def _ahead(rates: Sequence[Rate], now: MemoryNow, axis: Axis) -> Forecast | None:
    rate = Rate(
        sum(one.value for one in rates),
        sum(max(one.low, 0.0) for one in rates),
        sum(one.high for one in rates),
    )
    if rate.value <= 0:
        return None
    left = max(now.limit_bytes - now.used_bytes, 0)
    # A slope whose lower bound is near nothing would put the far end beyond any horizon.
    slowest = max(rate.low, rate.value / 10)
    steps_left = Rate(left / rate.value, left / max(rate.high, rate.value), left / slowest)
    a_step = axis.step_seconds
    seconds_left = (
        Rate(*(steps * a_step for steps in (steps_left.value, steps_left.low, steps_left.high)))
        if a_step
        else None
    )
    at_step = int(axis.last_step + steps_left.value)
    says = f"reaches {text.size(now.limit_bytes)}, the {now.limit_from}, "
    says += f"at step {text.about(at_step)}"
    if seconds_left is not None:
        says += (
            f", in {text.duration(seconds_left.value)} "
            f"(between {text.duration(seconds_left.low)} and {text.duration(seconds_left.high)})"
        )
    return Forecast(
        limit_bytes=now.limit_bytes,
        limit_from=now.limit_from,
        now_bytes=now.used_bytes,
        bytes_per_step=rate,
        steps_left=steps_left,
        seconds_left=seconds_left,
        at_step=at_step,
        says=says,
    )


def _resident_rate(answer: Verdict, verdicts: tuple[Verdict, ...]) -> Rate:
    candidates = [
        verdict.bytes_per_step
        for verdict in verdicts
        if verdict.outcome in (Outcome.GROWING, Outcome.LEAK)
        and verdict.series.metric in (RSS, USS)
    ]
    return candidates[0] if candidates else answer.bytes_per_step
