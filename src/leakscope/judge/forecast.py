"""When the limit is reached if growth goes on as judged."""

from __future__ import annotations

from leakscope import text
from leakscope.judge.overall import Overall
from leakscope.judge.series import RSS, USS
from leakscope.model import Forecast, Outcome, Rate, Verdict


def forecast(
    overall: Overall,
    *,
    limit_bytes: int,
    limit_from: str,
    now_bytes: int,
    last_step: int,
    step_seconds: float | None,
) -> Forecast | None:
    """None for a run that does not grow."""
    growing = overall.growing()
    if not growing:
        return None
    # The kernel kills for resident memory: what is live and what the allocator holds beside it.
    rates = [_resident_rate(account.verdict, account.verdicts) for account in growing]
    rate = Rate(
        sum(one.value for one in rates),
        sum(max(one.low, 0.0) for one in rates),
        sum(one.high for one in rates),
    )
    if rate.value <= 0:
        return None
    left = max(limit_bytes - now_bytes, 0)
    # A slope whose lower bound is near nothing would put the far end beyond any horizon.
    slowest = max(rate.low, rate.value / 10)
    steps_left = Rate(left / rate.value, left / max(rate.high, rate.value), left / slowest)
    seconds_left = (
        Rate(
            *(steps * step_seconds for steps in (steps_left.value, steps_left.low, steps_left.high))
        )
        if step_seconds
        else None
    )
    at_step = int(last_step + steps_left.value)
    says = f"reaches {text.size(limit_bytes)}, the {limit_from}, at step {text.about(at_step)}"
    if seconds_left is not None:
        says += (
            f", in {text.duration(seconds_left.value)} "
            f"(between {text.duration(seconds_left.low)} and {text.duration(seconds_left.high)})"
        )
    return Forecast(
        limit_bytes=limit_bytes,
        limit_from=limit_from,
        now_bytes=now_bytes,
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
