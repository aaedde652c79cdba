"""Two reports in, what differs in their memory and on their machines out.

First it is said in what memory the runs differ: in use, held by the allocator, copied pages, memory
of workers, the peak. Then every difference between the machines is asked whether it is known to act
on that memory, in that direction. A reason is a proposal; `leakscope bisect` makes the experiment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from leakscope import text
from leakscope.explain.effects import Judgement, judge_difference
from leakscope.model import (
    COMPARISON_SCHEMA,
    ComparedRun,
    Comparison,
    Difference,
    Finding,
    FindingPair,
    Likelihood,
    Outcome,
    Rate,
    Report,
    SeriesPair,
    Shape,
    Side,
    Symptom,
    Verdict,
)
from leakscope.summarise.machine_facts import facts_of
from leakscope.summarise.peak import FREED

_IN_USE = "heap.in_use_bytes"
_BLOCKS = "python.blocks_count"
_HELD = "heap.held_bytes"
_RSS = "process.rss_bytes"
_TREE = "tree.growth_bytes"
_GROWS = (Outcome.LEAK, Outcome.GROWING)

_APART = 0.25
_SMALLEST_APART = 8 << 20
"""Levels that are closer than a quarter, or than 8 MiB, differ from run to run on one machine."""


def compare_reports(a: Report, b: Report) -> Comparison:
    """Say in what two runs differ, and which difference of their machines may be why."""
    pairs = tuple(_series(a, b))
    sides = (_run(a), _run(b))
    symptoms = _symptoms(a, b, pairs, sides)
    differences = _differences(a, b, symptoms)
    return Comparison(
        schema=COMPARISON_SCHEMA,
        a=sides[0],
        b=sides[1],
        says=_says(sides, pairs, symptoms, differences),
        symptoms=tuple(symptoms),
        series=pairs,
        findings=tuple(_findings(a, b)),
        differences=differences,
        notes=tuple(_notes(a, b)),
    )


def bounded(verdict: Verdict) -> Rate:
    """The rate of a series. One that is steady is at most what would have been seen: the interval
    of a level that moves in jumps can be far wider than that."""
    rate = verdict.bytes_per_step
    if verdict.outcome is not Outcome.STEADY:
        return rate
    most = verdict.smallest_visible_bytes_per_step
    low, value, high = (min(max(one, -most), most) for one in (rate.low, rate.value, rate.high))
    return Rate(value, low, high)


def difference(one: Rate, other: Rate) -> Rate:
    """Of two runs that know nothing of each other: the first less the second."""
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return Rate(value, value - below, value + above)


def _series(a: Report, b: Report) -> Iterator[SeriesPair]:
    ours, theirs = _by_process(a), _by_process(b)
    for metric, process in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get((metric, process)), theirs.get((metric, process))
        yield SeriesPair(metric, process, _side(one), _side(other), _is_apart(one, other))


def _by_process(report: Report) -> dict[tuple[str, str], Verdict]:
    """`child 4711` is another in every run: such names are numbered in the order of the start."""
    names: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for process in report.processes:
        stem = re.sub(rf"\s*\(?\b{process.pid}\b\)?", "", process.name)
        if stem != process.name:
            numbers[stem] = numbers.get(stem, 0) + 1
            names[process.name] = f"{stem} {numbers[stem]}"
    return {
        (v.series.metric, names.get(v.series.process, v.series.process)): v
        for v in report.verdicts
        if v.unit == "bytes"
    }


def _side(verdict: Verdict | None) -> Side | None:
    if verdict is None:
        return None
    return Side(verdict.outcome, verdict.shape, bounded(verdict))


def _is_apart(one: Verdict | None, other: Verdict | None) -> bool:
    """Only where at least one of them grows: two steady series differ by noise."""
    if one is None or other is None:
        return False
    if one.outcome not in _GROWS and other.outcome not in _GROWS:
        return False
    if Outcome.UNKNOWN in (one.outcome, other.outcome):
        return False
    apart = difference(bounded(one), bounded(other))
    visible = max(one.smallest_visible_bytes_per_step, other.smallest_visible_bytes_per_step)
    return abs(apart.value) >= visible and (apart.low > 0 or apart.high < 0)


def _run(report: Report) -> ComparedRun:
    workers = [one for one in report.processes if one.kind not in ("main", "helper")]
    private = [one.last_uss_bytes for one in workers if one.last_uss_bytes is not None]
    peak = report.peak
    return ComparedRun(
        run=report.run,
        host=report.machine.host,
        command=report.command,
        verdict=report.verdict,
        because=report.because,
        steps=report.steps,
        steps_from=report.steps_from,
        seconds=report.seconds,
        peak_bytes=peak.total_bytes if peak is not None else None,
        held_bytes=peak.parts.get(FREED, 0) if peak is not None else None,
        workers=len(workers),
        workers_private_bytes=sum(private) if private else None,
    )


def _symptoms(
    a: Report, b: Report, pairs: tuple[SeriesPair, ...], sides: tuple[ComparedRun, ComparedRun]
) -> dict[Symptom, int]:
    """In what memory they differ, and which of them, 0 or 1, has more; the most telling first."""
    found: dict[Symptom, int] = {}
    # A reason and not only a place; counters of two runs differ by chance on a busy machine.
    copied = [any(v.shape is Shape.COPY_ON_WRITE for v in one.verdicts) for one in (a, b)]
    if sum(copied) == 1:
        found[Symptom.COPIED] = copied.index(True)
    for pair in pairs:
        symptom = {_IN_USE: Symptom.LIVE, _BLOCKS: Symptom.LIVE, _HELD: Symptom.HELD}.get(
            pair.metric
        )
        if pair.differs and symptom is not None:
            found.setdefault(symptom, _larger(pair))
    if (held := _level(sides[0].held_bytes, sides[1].held_bytes)) is not None:
        found.setdefault(Symptom.HELD, held)
    private = [one.workers_private_bytes or 0 for one in sides]
    if (workers := _level(*private)) is not None:
        found[Symptom.WORKERS] = workers
    if not found:  # resident memory and the peak follow from what was found above
        for pair in pairs:
            if pair.differs and pair.metric in (_RSS, _TREE):
                found.setdefault(Symptom.RESIDENT, _larger(pair))
        if (peak := _level(sides[0].peak_bytes, sides[1].peak_bytes)) is not None:
            found[Symptom.PEAK] = peak
    return found


def _larger(pair: SeriesPair) -> int:
    assert pair.a is not None
    assert pair.b is not None
    return int(pair.b.bytes_per_step.value > pair.a.bytes_per_step.value)


def _level(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return None
    if abs(one - other) < max(_SMALLEST_APART, _APART * max(one, other)):
        return None
    return int(other > one)


def _differences(a: Report, b: Report, symptoms: Mapping[Symptom, int]) -> tuple[Difference, ...]:
    ours, theirs = facts_of(a.machine), facts_of(b.machine)
    cores = (a.machine.cpu_count, b.machine.cpu_count)
    ranked: list[tuple[tuple[int, float], Difference]] = []
    by_effect: dict[str, int] = {}
    for name in dict.fromkeys([*ours, *theirs]):
        values = (ours.get(name), theirs.get(name))
        if values[0] == values[1]:
            continue
        judged = judge_difference(name, values, symptoms, cores)
        made = _difference_of(name, values, judged, has_symptoms=bool(symptoms))
        rank = judged.rank if judged is not None else (len(Likelihood), 0.0)
        place = by_effect.get(made.effect) if made.effect else None
        if place is None:
            by_effect[made.effect] = len(ranked)
            ranked.append((rank, made))
        else:
            ranked[place] = _folded(ranked[place], (rank, made))
    ranked.sort(key=lambda one: one[0])
    return tuple(one for _, one in ranked)


def _difference_of(
    name: str,
    values: tuple[str | None, str | None],
    judged: Judgement | None,
    *,
    has_symptoms: bool,
) -> Difference:
    if judged is None:
        because = "no effect on memory is known"
        return Difference(name, *values, Likelihood.UNKNOWN, because)
    effect = judged.effect
    because = judged.because if has_symptoms else f"nothing to explain; {judged.because}"
    return Difference(
        name, *values, judged.likelihood, because, effect.id, effect.remedy, effect.url
    )


def _folded(
    old: tuple[tuple[int, float], Difference], new: tuple[tuple[int, float], Difference]
) -> tuple[tuple[int, float], Difference]:
    """Two differences with the same effect are one: the better ranked, with the other beside it."""
    best, rest = (old, new) if old[0] <= new[0] else (new, old)
    also = (*old[1].also, *new[1].also, _shown(rest[1]))
    return best[0], replace(best[1], also=also)


def _shown(one: Difference) -> str:
    return f"{one.what}: {one.a or 'not set'} | {one.b or 'not set'}"


def _findings(a: Report, b: Report) -> Iterator[FindingPair]:
    ours = {one.fingerprint: one for one in a.findings}
    theirs = {one.fingerprint: one for one in b.findings}
    for fingerprint in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(fingerprint), theirs.get(fingerprint)
        known = one or other
        assert known is not None
        yield FindingPair(
            fingerprint,
            known.rule,
            known.name,
            _where(known),
            one.bytes_per_step if one is not None else None,
            other.bytes_per_step if other is not None else None,
        )


def _where(finding: Finding) -> str:
    site = finding.keeper or finding.site
    return f"{site.file}:{site.line}" if site is not None else ""


_IN_WORDS = {
    Symptom.LIVE: "memory in use grows faster",
    Symptom.HELD: "the allocator holds more freed memory",
    Symptom.COPIED: "workers copy pages that they shared with their parent",
    Symptom.WORKERS: "worker processes have more memory of their own",
    Symptom.RESIDENT: "resident memory grows faster",
    Symptom.PEAK: "the highest point is higher",
}


def _says(
    sides: tuple[ComparedRun, ComparedRun],
    pairs: tuple[SeriesPair, ...],
    symptoms: Mapping[Symptom, int],
    differences: tuple[Difference, ...],
) -> str:
    if Outcome.UNKNOWN in (sides[0].verdict, sides[1].verdict) and not symptoms:
        return "At least one of the runs has no verdict, so they cannot be compared: run it longer."
    if not symptoms:
        return "The two runs do not differ in memory by more than runs on one machine do."
    first, more = next(iter(symptoms.items()))
    said = f"In {'AB'[more]} {_IN_WORDS[first]}{_numbers(first, more, sides, pairs)}."
    if first in (Symptom.HELD, Symptom.COPIED, Symptom.RESIDENT) and _same_live(pairs):
        how = "alike in both" if _live_grows(pairs) else "in neither"
        said += f" Memory in use grows {how}: what differs is not kept by the program."
    best = differences[0] if differences else None
    if best is None:
        said += " Nothing that is known of the two machines differs: compare input and commands."
    elif best.likelihood is Likelihood.LIKELY:
        said += f" {_named(best)} is the likely reason."
    elif best.likelihood is Likelihood.POSSIBLE:
        said += f" {_named(best)} is a possible reason; leakscope bisect makes the experiment."
    else:
        said += " No difference between the machines is known to do that."
    return said


def _named(one: Difference) -> str:
    what = one.what[:1].upper() + one.what[1:]
    return f"{what} ({one.a or 'not set'} in A, {one.b or 'not set'} in B)"


def _numbers(
    symptom: Symptom,
    more: int,
    sides: tuple[ComparedRun, ComparedRun],
    pairs: tuple[SeriesPair, ...],
) -> str:
    metrics = {
        Symptom.LIVE: (_IN_USE, _BLOCKS),
        Symptom.HELD: (_HELD,),
        Symptom.RESIDENT: (_TREE, _RSS),
    }.get(symptom, ())
    for pair in pairs:
        if pair.metric in metrics and pair.differs and pair.a is not None and pair.b is not None:
            rates = [text.rate(one.bytes_per_step.value) for one in (pair.a, pair.b)]
            return f": {rates[more]} against {rates[1 - more]}"
    levels = {
        Symptom.HELD: [one.held_bytes for one in sides],
        Symptom.WORKERS: [one.workers_private_bytes for one in sides],
        Symptom.PEAK: [one.peak_bytes for one in sides],
    }.get(symptom)
    if levels is None:
        return ""
    return f": {text.size(levels[more] or 0)} against {text.size(levels[1 - more] or 0)}"


def _same_live(pairs: tuple[SeriesPair, ...]) -> bool:
    live = [pair for pair in pairs if pair.metric == _IN_USE and pair.process != "all"]
    return bool(live) and all(
        pair.a is not None
        and pair.b is not None
        and Outcome.UNKNOWN not in (pair.a.outcome, pair.b.outcome)
        and not pair.differs
        for pair in live
    )


def _live_grows(pairs: tuple[SeriesPair, ...]) -> bool:
    return any(
        side is not None and side.outcome in _GROWS
        for pair in pairs
        if pair.metric == _IN_USE
        for side in (pair.a, pair.b)
    )


def _notes(a: Report, b: Report) -> Iterator[str]:
    if a.steps_from != b.steps_from:
        yield (
            f"Steps were counted by {a.steps_from} in A and by {b.steps_from} in B: rates per step "
            "are not comparable."
        )
    if a.command[1:] != b.command[1:]:
        yield "The commands differ: what differs in memory may be the program's or its arguments'."
    for name, one in (("A", a), ("B", b)):
        if one.ending.signal is not None or one.ending.exit_code:
            yield f"{name}: {one.ending.says}."
        if not one.machine.facts:
            yield f"{name} was recorded by an older leakscope and says little about its machine."
