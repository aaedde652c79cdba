"""LS007: something fills up to its bound."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE
from leakscope.model import Holding, Outcome, Shape, Verdict

_EARLY = 0.25
"""Share of the run. What was full in the first fifth is warm-up, LS001; between the two neither is
said, for which row shows the end is a matter of chance."""
_LATE = 0.5
_NAMED_FROM = 256 << 10
"""Bytes: smaller rings and pools are the libraries' own."""
_GOOD_PART = 0.2
"""A rise that ended in the second half of the run, and looks as if it slowed down: something that
fills up, if a container was seen to take a good part of it. LS001 speaks of those that ended before
the middle. A choice."""


@harmless("LS007")
def cache_filling(case: RunCase) -> str | None:
    """A cache, a queue or a replay memory fills up to its bound.

    ## Why it looks like a leak
    Until it is full it grows with every step, as a leak does. Whether it is one shows only when it
    is full, or where its bound can be read.

    ## Example
    ```python
    memory = collections.deque(maxlen=100_000)
    memory.append(transition)  # grows for the first 100,000 steps
    ```

    ## What to do
    Nothing, if it fits when it is full: the size of one entry times the bound. Otherwise a smaller
    bound.

    ## Not this rule when
    Nothing bounds it and it was not seen to stop: LS501. A curve that flattens out, or what was
    full in the first fifth of the run, is LS001.
    """
    if case.overall.outcome is Outcome.LEAK:
        return None
    if case.overall.growing():
        return _still_filling(case)
    full = case.settled(IN_USE, Shape.FILLING, Shape.WARM_UP)
    if full is None or not case.is_steady or not case.is_at_rest(full):
        return None
    if full.shape is Shape.WARM_UP and not _was_seen_to_fill(case, full):
        return None
    latest = _EARLY if full.shape is Shape.FILLING else _LATE
    if full.steps_at[-1] > latest * case.run.axis.last_step:
        return (
            f"Live memory filled up by {text.size(full.size_bytes)} until step "
            f"{text.count(round(full.steps_at[-1]))} and has stopped there, as a cache or a buffer "
            f"does that is full{_by_name(case)}."
        )
    return None


def _was_seen_to_fill(case: RunCase, rise: Verdict) -> bool:
    """By a container that took a good part of the rise while it was looked at."""
    taken = (
        (one.counts[-1][1] - one.counts[0][1]) * one.bytes_each
        for one in case.run.recording.holdings
        if one.kind == "container" and one.process == case.lead
    )
    return max(taken, default=0.0) >= _GOOD_PART * rise.size_bytes


def _still_filling(case: RunCase) -> str | None:
    bounded = [suspect for suspect in case.suspects if suspect.is_bounded]
    if not bounded:
        return None
    largest = max(bounded, key=lambda suspect: suspect.share)
    name = f"`{largest.named.name}`" if largest.named is not None else "what grows"
    return (
        f"{name} takes {text.percent(min(largest.share, 1.0))} of the growth, but "
        f"{largest.is_bounded}: it stops when that is full."
    )


def _by_name(case: RunCase) -> str:
    """The bounded container that was the largest when it was last looked at."""
    bounded = [one for one in case.run.recording.holdings if one.bound and one.process == case.lead]
    largest = max(bounded, key=_bytes, default=None)
    if largest is None or _bytes(largest) < _NAMED_FROM:
        return ""
    link = next((one for one in reversed(largest.path[: largest.grows_at + 1]) if one.name), None)
    return f"; `{link.name}` is bounded: {largest.bound}" if link is not None else ""


def _bytes(holding: Holding) -> float:
    return holding.counts[-1][1] * holding.bytes_each
