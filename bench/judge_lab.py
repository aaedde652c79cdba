"""Made series in, error rates out: how often the judge is wrong, beside three classic tests.

Every family is a way memory really behaves, scaled to the length of the series.
The harmless ones give the rate of false alarms, the leaking ones the power and the
coverage of the interval. Seeds below 4000 were used or looked at while the thresholds
were chosen; published figures come from seeds from 4000 on.

    python bench/judge_lab.py --series 250 --seed 11 --n 60 120
    python bench/judge_lab.py --series 200 --seed 4000 --markdown docs/accuracy-judge.md
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import stats

from leakscope.judge import judge
from leakscope.model import Outcome, Series, SeriesKey

Numbers = NDArray[np.float64]
Random = np.random.Generator

MIB = 2.0**20
PAGE = 4096.0
LENGTHS = (60, 120, 300, 600)
FIRST_UNSEEN = 4000
"""Seeds from this on were not used to choose a threshold."""
NOISE_SD_BYTES = tuple(sd * MIB for sd in (0.05, 0.3, 1.0, 3.0))
NOISES = ("white", "ar", "bursts")
BLEND = (
    "warm-up fast",
    "steps",
    "spikes",
    "high-water",
    "evaluation",
    "epochs",
    "saw-tooth, floors",
)
"""What a mixed leak rides on: two of these. A warm-up that lasts the whole run is left
out, because no one can see a small leak under it."""

FEWEST_COLLECTIONS = 8
"""Of a saw-tooth with a leak in it: five of eight full collections fall in the judged part,
and with fewer nobody should judge cyclic garbage: until it is collected it looks like a leak."""


@dataclass
class Part:
    """One way of moving, in bytes above the base level."""

    values: Numbers
    floors: tuple[int, ...] = ()
    wobble_sd: float = 0.0
    """Standard deviation of what changes at random from step to step by design; a leak's
    size is counted in units of this and the noise together."""


@dataclass
class Made:
    """A series and the truth about it."""

    series: Series
    bytes_per_step: float


@dataclass
class Score:
    """What became of the series of one family at one length."""

    made: int = 0
    flagged: dict[str, int] = field(default_factory=dict)
    covered: int = 0
    seconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict)
    visible_seen: int = 0


def flat(random: Random, n: int) -> Part:
    return Part(np.zeros(n))


def warm_up_fast(random: Random, n: int) -> Part:
    time_constant = random.uniform(2, n / 12)
    return Part(random.uniform(20, 300) * MIB * (1 - np.exp(-np.arange(n) / time_constant)))


def warm_up_slow(random: Random, n: int) -> Part:
    time_constant = random.uniform(n / 8, n / 3)
    return Part(random.uniform(20, 300) * MIB * (1 - np.exp(-np.arange(n) / time_constant)))


def steps(random: Random, n: int) -> Part:
    values = np.zeros(n)
    for _ in range(random.integers(1, 3)):
        values[random.integers(2, n - 2) :] += random.uniform(5, 200) * MIB
    return Part(values)


def spikes(random: Random, n: int) -> Part:
    values = np.zeros(n)
    period = int(random.integers(max(3, n // 20), max(5, n // 4)))
    width = int(random.integers(1, 3))
    height = random.uniform(20, 400) * MIB
    for start in range(int(random.integers(0, period)), n, period):
        values[start : start + width] += height * random.uniform(0.8, 1.2)
    return Part(values)


def saw_tooth_with_floors(random: Random, n: int, fewest: int = 4) -> Part:
    values = np.zeros(n)
    floors = []
    period = int(random.integers(max(4, n // 25), max(6, n // fewest)))
    height = random.uniform(10, 200) * MIB
    phase = int(random.integers(0, period))
    length = period
    for i in range(n):
        values[i] = height * phase / period
        if phase == 0:
            floors.append(i)
        phase += 1
        if phase >= length:
            phase, length = 0, max(3, int(period * random.uniform(0.8, 1.2)))
    return Part(values, tuple(floors))


def saw_tooth(random: Random, n: int) -> Part:
    return Part(saw_tooth_with_floors(random, n).values)


def saw_tooth_uneven(random: Random, n: int, fewest: int = 4) -> Part:
    """Garbage comes at random, and is collected when enough of it has gathered."""
    steps_each = random.uniform(max(4, n / 25), max(6, n / fewest))
    height = random.uniform(10, 200) * MIB
    garbage = random.exponential(height / steps_each, n)
    values, age = np.zeros(n), np.zeros(n)
    floors = []
    held, most = random.uniform(0, height), height
    for i in range(n):
        held += garbage[i]
        age[i] = age[i - 1] + 1 if i else 0
        if held > most:
            held, most, age[i] = 0.0, height * random.uniform(0.8, 1.2), 0
            floors.append(i)
        values[i] = held
    wobble = values - height / steps_each * age
    return Part(values, tuple(floors), float(wobble[floors[0] if floors else 0 :].std()))


def teeth_that_grow(random: Random, n: int) -> Part:
    """Ever more garbage between full collections, and all of it collected."""
    part = saw_tooth_with_floors(random, n)
    return Part(part.values * np.linspace(1, random.uniform(1.5, 5), n), part.floors)


def high_water(random: Random, n: int) -> Part:
    sizes = random.lognormal(0, random.uniform(0.3, 0.7), n) * random.uniform(10, 60) * MIB
    return Part(np.maximum.accumulate(sizes))


def cache_filled(random: Random, n: int) -> Part:
    full_at = random.uniform(0.15, 0.6) * n
    return Part(random.uniform(20, 200) * MIB * np.minimum(1, np.arange(n) / full_at))


def variable_length(random: Random, n: int) -> Part:
    lengths = random.lognormal(0, random.uniform(0.2, 0.6), n)
    transient = lengths * random.uniform(2, 20) * MIB
    kept = np.maximum.accumulate(lengths) * random.uniform(2, 40) * MIB
    return Part(kept + transient, wobble_sd=float(transient.std()))


def evaluation(random: Random, n: int) -> Part:
    values = np.zeros(n)
    period = int(random.integers(max(6, n // 20), max(8, n // 5)))
    width = int(random.integers(2, max(3, period // 3)))
    height = random.uniform(10, 300) * MIB * random.choice([1, 1, -1])
    for start in range(int(random.integers(1, period)), n, period):
        values[start : start + width] += height
    return Part(values)


def epochs(random: Random, n: int) -> Part:
    """Each epoch starts with loaders and a validation, and some epochs hold a buffer more."""
    values = np.zeros(n)
    length = n / random.integers(3, 9)
    start_up = random.uniform(20, 200) * MIB
    width = int(max(2, length * random.uniform(0.05, 0.2)))
    buffer = random.uniform(5, 60) * MIB
    every_other = random.random() < 0.5
    for epoch in range(int(np.ceil(n / length))):
        first, end = int(epoch * length), int((epoch + 1) * length)
        values[first : first + width] += start_up
        if every_other and epoch % 2:
            values[first:end] += buffer
    return Part(values)


def steps_that_end(random: Random, n: int) -> Part:
    values = np.zeros(n)
    height = random.uniform(5, 40) * MIB
    last = random.uniform(0.3, 0.6) * n
    for at in np.linspace(random.uniform(0.02, 0.1) * n, last, random.integers(3, 9)):
        values[int(at) :] += height * random.uniform(0.5, 1.5)
    return Part(values)


HARMLESS: dict[str, Callable[[Random, int], Part]] = {
    "flat": flat,
    "warm-up fast": warm_up_fast,
    "warm-up slow": warm_up_slow,
    "steps": steps,
    "spikes": spikes,
    "saw-tooth, floors": saw_tooth_with_floors,
    "saw-tooth": saw_tooth,
    "uneven saw-tooth, floors": saw_tooth_uneven,
    "teeth that grow, floors": teeth_that_grow,
    "high-water": high_water,
    "cache filled": cache_filled,
    "variable length": variable_length,
    "evaluation": evaluation,
    "epochs": epochs,
    "steps that end": steps_that_end,
}


def two_levels(random: Random, n: int) -> Part:
    """Read by the clock: in the middle of a step or between two, now and then on the way."""
    share, height = random.uniform(0.2, 0.8), random.uniform(10, 200) * MIB
    part = (random.random(n) < share).astype(float)
    on_the_way = random.random(n) < 0.1
    part[on_the_way] = random.random(int(on_the_way.sum()))
    return Part(height * part)


def work_that_grows(random: Random, n: int) -> Part:
    """The same with ever longer batches: a step takes more, and gives all of it back."""
    return Part(two_levels(random, n).values * np.linspace(1, random.uniform(1.2, 3), n))


BY_THE_CLOCK: dict[str, Callable[[Random, int], Part]] = {
    "two levels": two_levels,
    "work that grows": work_that_grows,
}
"""Harmless too; no part of `mixed`, whose published figures are older."""


def _sum(one: Part, other: Part) -> Part:
    return Part(
        one.values + other.values,
        one.floors or other.floors,
        float(np.hypot(one.wobble_sd, other.wobble_sd)),
    )


def mixed(
    random: Random, n: int, names: Sequence[str] = tuple(HARMLESS), *, is_leak: bool = False
) -> Part:
    """Two families at once. Only one of them can say where the full collections were."""
    one, other = (names[i] for i in random.choice(len(names), 2, replace=False))
    return _sum(_part(random, n, one, is_leak), _part(random, n, other, is_leak))


def _part(random: Random, n: int, name: str, is_leak: bool) -> Part:
    if is_leak and name == "saw-tooth, floors":
        return saw_tooth_with_floors(random, n, FEWEST_COLLECTIONS)
    return HARMLESS[name](random, n)


RIDES_ON: dict[str, Callable[[Random, int], Part]] = {
    "linear": flat,
    "+ warm-up": warm_up_fast,
    "+ spikes": spikes,
    "staircase": flat,
    "+ high-water": high_water,
    "late start": flat,
    "+ saw-tooth, floors": lambda random, n: saw_tooth_with_floors(random, n, FEWEST_COLLECTIONS),
    "+ uneven saw-tooth, floors": lambda random, n: saw_tooth_uneven(random, n, FEWEST_COLLECTIONS),
    "+ variable length": variable_length,
    "+ evaluation": evaluation,
    "+ epochs": epochs,
    "+ two levels": two_levels,
    "+ two of these": lambda random, n: mixed(random, n, BLEND, is_leak=True),
}


def _leak(random: Random, family: str, n: int, bytes_per_step: float) -> Numbers:
    at = np.arange(n, dtype=float)
    if family == "staircase":
        chunk = int(random.integers(max(2, n // 40), max(3, n // 8)))
        return bytes_per_step * chunk * np.floor((at + random.integers(0, chunk)) / chunk)
    if family == "late start":
        return bytes_per_step * np.maximum(0, at - random.uniform(0.2, 0.4) * n)
    return bytes_per_step * at


def _noise(random: Random, n: int, kind: str, sd: float) -> Numbers:
    if kind == "white":
        return random.normal(0, sd, n)
    if kind == "bursts":
        return random.exponential(sd, n) * (random.random(n) < 0.3)
    noise = np.empty(n)
    noise[0] = random.normal(0, sd)
    shocks = random.normal(0, sd * np.sqrt(1 - 0.9**2), n)
    for i in range(1, n):
        noise[i] = 0.9 * noise[i - 1] + shocks[i]
    return noise


def make(random: Random, family: str, n: int, *, sigmas: float, is_exact: bool) -> Made:
    """One series of a family. `sigmas` is a leak's growth over the run in noise units."""
    kind = NOISES[random.integers(len(NOISES))]
    sd = float(random.choice(NOISE_SD_BYTES))
    if family in RIDES_ON:
        part = RIDES_ON[family](random, n)
        rate = sigmas * float(np.hypot(sd, part.wobble_sd)) / n
        values = part.values + _leak(random, family, n, rate)
    else:
        alone = {**HARMLESS, **BY_THE_CLOCK, "mixed": mixed}
        part = alone[family](random, n)
        rate = 0.0
        values = part.values
    values = values + random.uniform(300, 3000) * MIB
    if not is_exact:
        values = np.round((values + _noise(random, n, kind, sd)) / PAGE) * PAGE
    else:
        values = np.round(values)
    return Made(
        Series(
            SeriesKey("heap.in_use_bytes" if is_exact else "process.rss_bytes", "1-1"),
            "bytes",
            tuple(float(i) for i in range(n)),
            tuple(values.tolist()),
            floors=part.floors,
            is_exact=is_exact,
            resolution=0.0 if is_exact else PAGE,
        ),
        rate,
    )


def _kendall_s(y: Numbers) -> float:
    return float(sum(np.sign(y[i + 1 :] - y[i]).sum() for i in range(len(y) - 1)))


def _kendall_variance(y: Numbers) -> float:
    n = len(y)
    _, ties = np.unique(y, return_counts=True)
    return float((n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18)


def mann_kendall(y: Numbers) -> bool:
    """Mann (1945), Kendall: one-sided at 1 %."""
    variance = _kendall_variance(y)
    return variance > 0 and (_kendall_s(y) - 1) / np.sqrt(variance) > stats.norm.isf(0.01)


def hamed_rao(y: Numbers) -> bool:
    """Mann-Kendall with the variance corrected for autocorrelation (Hamed and Rao, 1998)."""
    n = len(y)
    variance = _kendall_variance(y)
    if variance <= 0:
        return False
    at = np.arange(n, dtype=float)
    every = max(1, n // 150)  # the median of pairwise slopes needs no more pairs than this
    i, j = np.triu_indices(len(at[::every]), 1)
    thin_x, thin_y = at[::every], y[::every]
    ranks = stats.rankdata(y - np.median((thin_y[j] - thin_y[i]) / (thin_x[j] - thin_x[i])) * at)
    centred = ranks - ranks.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:n]
    if correlation[0] <= 0:
        return mann_kendall(y)
    correlation = correlation / correlation[0]
    lag = np.arange(1, n - 1)
    weight = (n - lag) * (n - lag - 1.0) * (n - lag - 2.0) * correlation[1 : n - 1]
    counted = np.abs(correlation[1 : n - 1]) > stats.norm.isf(0.01) / np.sqrt(n)
    variance *= 1 + 2.0 / (n * (n - 1) * (n - 2)) * float(weight[counted].sum())
    return variance > 0 and (_kendall_s(y) - 1) / np.sqrt(variance) > stats.norm.isf(0.01)


def end_minus_start(y: Numbers) -> bool:
    """More than 5 MiB and 1 % above where it began."""
    rise = float(np.median(y[-3:]) - np.median(y[:3]))
    return rise > max(5 * MIB, 0.01 * float(y[0]))


CLASSIC = {"Mann-Kendall": mann_kendall, "Hamed-Rao": hamed_rao, "end − start": end_minus_start}


def score(
    family: str, n: int, count: int, seed: int, *, sigmas: float, is_exact: bool, classic: bool
) -> Score:
    """The judge and the classic tests on `count` series of one family and length."""
    random = np.random.default_rng([seed, n, int(sigmas), is_exact, *family.encode()])
    result = Score(made=count, flagged={"leakscope": 0, **dict.fromkeys(CLASSIC, 0)})
    for _ in range(count):
        made = make(random, family, n, sigmas=sigmas, is_exact=is_exact)
        began = time.perf_counter()
        verdict = judge(made.series)
        result.seconds += time.perf_counter() - began
        result.flagged["leakscope"] += verdict.outcome is Outcome.GROWING
        result.outcomes[verdict.outcome] = result.outcomes.get(verdict.outcome, 0) + 1
        rate = verdict.bytes_per_step
        result.covered += rate.low <= made.bytes_per_step <= rate.high
        result.visible_seen += made.bytes_per_step >= verdict.smallest_visible_bytes_per_step
        if classic:
            y = np.asarray(made.series.values)
            for name, test in CLASSIC.items():
                result.flagged[name] += test(y)
    return result


def _upper_bound(hits: int, count: int) -> float:
    """Clopper-Pearson, one-sided 95 %."""
    return 1.0 if hits >= count else float(stats.beta.ppf(0.95, hits + 1, count - hits))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def harmless_table(
    lengths: Sequence[int], count: int, seed: int, *, is_exact: bool, only: str | None
) -> str:
    """False alarms per family: the judge by length, then all lengths beside the classics."""
    rows = []
    for family in [*HARMLESS, "mixed", *BY_THE_CLOCK]:
        if only and only not in family:
            continue
        scores = [
            score(family, n, count, seed, sigmas=0, is_exact=is_exact, classic=True)
            for n in lengths
        ]
        hits = sum(s.flagged["leakscope"] for s in scores)
        total = count * len(lengths)
        unknown = sum(s.outcomes.get(Outcome.UNKNOWN, 0) for s in scores)
        classics = [f"{sum(s.flagged[name] for s in scores) / total:.1%}" for name in CLASSIC]
        by_length = [f"{s.flagged['leakscope'] / count:.1%}" for s in scores]
        bound = f"{hits / total:.2%} (≤ {_upper_bound(hits, total):.2%})"
        rows.append([family, *by_length, bound, f"{unknown / total:.0%}", *classics])
        print(" | ".join(rows[-1]), flush=True)
    head = ["harmless", *(f"n={n}" for n in lengths), "all (95 % bound)", "unknown", *CLASSIC]
    return _table(head, rows)


def leak_table(
    lengths: Sequence[int],
    count: int,
    seed: int,
    *,
    sigmas: float,
    is_exact: bool,
    only: str | None,
) -> str:
    """Power per family and length, and how often the interval holds the true rate."""
    rows = []
    for family in RIDES_ON:
        if only and only not in family:
            continue
        scores = [
            score(family, n, count, seed, sigmas=sigmas, is_exact=is_exact, classic=False)
            for n in lengths
        ]
        total = count * len(lengths)
        covered = sum(s.covered for s in scores) / total
        steady = sum(s.outcomes.get(Outcome.STEADY, 0) for s in scores) / total
        milliseconds = 1000 * sum(s.seconds for s in scores) / total
        rows.append(
            [
                family,
                *(f"{s.flagged['leakscope'] / count:.1%}" for s in scores),
                f"{steady:.1%}",
                f"{covered:.1%} ± {np.sqrt(covered * (1 - covered) / total):.1%}",
                f"{milliseconds:.1f}",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    head = ["leak", *(f"n={n}" for n in lengths), "called steady", "interval covers", "ms each"]
    return _table(head, rows)


def _machine() -> str:
    """What this ran on, in one sentence."""
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    )


def _introduction(asked: argparse.Namespace) -> list[str]:
    """How the figures of the document came about."""
    lengths = ", ".join(str(n) for n in asked.n)
    sigmas = ", ".join(f"{s:g}" for s in asked.sigmas)
    seen = (
        "was not used to choose anything" if asked.seed >= FIRST_UNSEEN else "is a development seed"
    )
    command = f"python bench/judge_lab.py --series {asked.series} --seed {asked.seed}"
    return [
        "# How accurate the verdicts are",
        "Written by `bench/judge_lab.py`; do not edit it by hand.",
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `{command}` on one process of a machine "
        f"with {_machine()}.",
        "The lab makes series whose truth is known, gives them to the judge, and counts. "
        "Every family is a way memory really behaves: a warm-up, a cache that fills, a saw-tooth "
        "of garbage collection, epochs with loaders and buffers, a high-water mark. Sizes, places "
        "and periods are drawn anew for each series and scale with its length. To this comes noise "
        "of 0.05 to 3 MiB standard deviation, a third of it white, a third with memory "
        "(AR 0.9), a third one-sided bursts, rounded to pages, as resident memory is.",
        f"There are {asked.series} series for each family and each length ({lengths} values). "
        f"The seed {asked.seed} {seen}; thresholds were chosen on seeds below {FIRST_UNSEEN}.",
        "*False alarms* are harmless series called growing; the bound is one-sided at 95 % "
        "(Clopper-Pearson). *Unknown* is the share that the judge does not decide. The three "
        "columns on the right are on the same series: Mann-Kendall and Hamed-Rao, one-sided at "
        "1 %, and whether the end is 5 MiB and 1 % above the start.",
        f"*Power* is the share of leaking series called growing, at a growth of {sigmas} "
        "standard deviations of the noise over the whole run. *Called steady* is the share of "
        "leaks that were missed with a wrong answer instead of an unknown. *Interval covers* is "
        "how often the interval of the rate, nominally 95 %, holds the true rate.",
    ]


def _limits(asked: argparse.Namespace) -> list[str]:
    """What the figures do not say."""
    least = 1 - 0.05 ** (1 / max(asked.series, 1))
    return [
        "## Limits",
        f"- A cell of {asked.series} series without a false alarm excludes rates above {least:.1%} "
        "only; the column over all lengths is the one to read.\n"
        "- Made series are no recordings: each is one or two of these families, and real runs "
        "may do what none of them does.\n"
        "- Growth smaller than the one measured here is found less often; each verdict that "
        "finds none names the smallest that it would have found.\n"
        "- Saw-teeth with a leak have at least eight full collections; with fewer the judge "
        "waits, and without any it cannot tell a leak from garbage.\n"
        "- Each figure is for one look at the end of a run. A run that is judged again and again "
        "while it goes on has as many chances of a false alarm.",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=200, help="series per family and length")
    parser.add_argument(
        "--seed", type=int, default=FIRST_UNSEEN, help=f"below {FIRST_UNSEEN}: development"
    )
    parser.add_argument("--n", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--sigmas", type=float, nargs="+", default=[30.0])
    parser.add_argument("--exact", action="store_true", help="counters without noise as well")
    parser.add_argument("--only", help="families whose name contains this")
    parser.add_argument("--skip-harmless", action="store_true")
    parser.add_argument("--skip-leaks", action="store_true")
    parser.add_argument("--markdown", type=Path, help="write the document here")
    return parser


def main() -> None:
    """Runs the lab and prints its tables, or writes them with an introduction."""
    asked = _parser().parse_args()
    began = time.perf_counter()
    page = _introduction(asked)
    for is_exact in [False, True] if asked.exact else [False]:
        kind = "exact counters, no noise" if is_exact else "RSS-like, noise sd 0.05 to 3 MiB"
        if not asked.skip_harmless:
            print(f"\nharmless, {kind}", flush=True)
            page += [
                f"## False alarms, {kind}",
                harmless_table(
                    asked.n, asked.series, asked.seed, is_exact=is_exact, only=asked.only
                ),
            ]
        for sigmas in [] if asked.skip_leaks else asked.sigmas:
            print(f"\nleak of {sigmas:g} sigma, {kind}", flush=True)
            page += [
                f"## Power at a growth of {sigmas:g} sigma over the run, {kind}",
                leak_table(
                    asked.n,
                    asked.series,
                    asked.seed,
                    sigmas=sigmas,
                    is_exact=is_exact,
                    only=asked.only,
                ),
            ]
    page += [*_limits(asked), f"This took {(time.perf_counter() - began) / 60:.0f} minutes."]
    if asked.markdown:
        asked.markdown.write_text("\n\n".join(page) + "\n")


if __name__ == "__main__":
    main()
