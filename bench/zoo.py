"""Runs the labelled programs of zoo/cpu/ under leakscope and scores what it said.

    python bench/zoo.py                       every program once
    python bench/zoo.py --repeat 3            three times; an unstable answer is shown as such
    python bench/zoo.py --only replay-fills   one folder, both programs
    python bench/zoo.py --json out.json       every row, for machines
    python bench/zoo.py --reports folder      every report, which bench/matrix.py can read
    python bench/zoo.py --recordings folder   keeps what was recorded; of programs that have been
                                              recorded there, only the report is made anew

What counts, for each program, from 0 to 1:

    verdict  a leak: LEAK 1, GROWING 1/2.  harmless: STEADY 1, GROWING or UNKNOWN 1/2, LEAK 0
    line     a leak: the keeper or the site of the first finding is a true line 1, of one of the
             first three 1/2
    holder   a leak: a true name is in the holder path of the first finding 1, of one of the first
             three 1/2; no score where nothing in Python holds it
    rate     a leak: bytes per step of the first finding, or of any series that grows, times steps,
             is within a factor of 2 of the growth that was measured, live or resident

Growth over the run is compared, not the rate itself: leakscope may count other steps than the
program does (a GAN has two optimizers, a pool of processes has none).

The exit code is 1 if there was a false alarm (GROWING or LEAK on a harmless program) or a leak
that was missed (neither of the two).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

ZOO = Path(__file__).resolve().parent.parent / "zoo" / "cpu"
VARIANTS = ("leaky", "fixed")
GROWS = ("growing", "leak")
RATE_FACTOR = 2.0


VERDICT_SCORES = {
    True: {"leak": 1.0, "growing": 0.5},
    False: {"steady": 1.0, "growing": 0.5, "unknown": 0.5},
}
"""What an answer is worth, by whether the program leaks."""
SCORES = ("verdict", "line", "holder", "rate")


@dataclass(frozen=True)
class Program:
    """One program and the truth about it."""

    name: str
    variant: str
    path: Path
    expected: str
    grown_bytes: tuple[float, ...]
    """Rate times steps, live and resident: its growth if it grows all the time; else empty."""
    lines: frozenset[str]
    """Places ("leaky.py:12") that are right as keeper or site."""
    holder_names: tuple[str, ...]

    @property
    def leaks(self) -> bool:
        return self.expected in GROWS


@dataclass(frozen=True)
class Answer:
    """What leakscope said about one run, and what that is worth."""

    name: str
    variant: str
    expected: str
    got: str
    verdict: float
    line: float | None
    """Score of the line; None where the program does not leak."""
    holder: float | None
    rate: float | None
    shape: str
    steps: int
    steps_from: str
    bytes_per_step: float
    rate_ratio: float | None
    """Growth that was said over true growth, the nearest one; None where there is none."""
    first: str
    """The first finding: rule, keeper or site, holder path."""
    unexplained: float | None
    """Share of the growth that no finding accounts for; None where it was not called a leak, or
    where nothing in Python holds it."""
    seconds: float
    because: str
    note: str

    @property
    def is_right(self) -> bool:
        return self.got in GROWS if self.expected in GROWS else self.got == self.expected

    @property
    def is_false_alarm(self) -> bool:
        return self.expected not in GROWS and self.got in GROWS


def programs(folder: Path, only: Sequence[str], variants: Sequence[str]) -> Iterator[Program]:
    """The programs of the zoo, in the order of their names."""
    for case in sorted(path.parent for path in folder.glob("*/expected.toml")):
        if only and case.name not in only:
            continue
        truth = tomllib.loads((case / "expected.toml").read_text())
        for variant in variants:
            expected = str(truth["verdict"][variant])
            leaks = expected in GROWS
            rates = (truth.get(key, 0) for key in ("bytes_per_step", "rss_bytes_per_step"))
            yield Program(
                case.name,
                variant,
                case / f"{variant}.py",
                expected,
                tuple(rate * float(truth["steps"]) for rate in rates if rate and leaks),
                frozenset((truth["site"], *truth.get("also_accept_lines", ()))),
                tuple(truth.get("holder_names", ())),
            )


def watch(
    program: Program,
    python: str,
    limit_s: float,
    kept: Path | None = None,
    recordings: Path | None = None,
) -> Answer:
    """Run one program as a user would, and read the report, which is `kept` in this folder."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        out = Path(recordings or folder, f"{program.name}-{program.variant}").absolute()
        if out.exists():
            command = [python, "-m", "leakscope", "report", str(out), "-o", str(report)]
        else:
            command = [python, "-m", "leakscope", "run", "--quiet", "--out", str(out)]
            command += ["--report", str(report), program.path.name]
        began = time.monotonic()
        note = ""
        try:
            done = subprocess.run(
                command,
                cwd=program.path.parent,
                capture_output=True,
                text=True,
                timeout=limit_s,
                env={name: value for name, value in os.environ.items() if name != "ZOO_STEPS"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            note = f"no answer in {limit_s:g} s"
        else:
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [""])[-1]
                note = f"exit {done.returncode}: {last[:80]}"
        seconds = time.monotonic() - began
        said = json.loads(report.read_text()) if report.exists() else {}
        if kept is not None and said:
            shutil.copy(report, kept / f"{program.name}-{program.variant}.json")
    return _answer(program, said, seconds, note if said else note or "no report")


def _answer(program: Program, said: dict[str, Any], seconds: float, note: str) -> Answer:
    findings = said.get("findings") or []
    lead = (said.get("verdicts") or [{}])[0]
    steps = int(said.get("steps") or 0)
    ratio = _nearest_ratio(program, said, steps) if program.leaks else None
    line = holder = rate = None
    if program.leaks:
        line = _first_match(findings, lambda finding: bool(program.lines & set(_places(finding))))
        if program.holder_names:
            holder = _first_match(findings, lambda finding: _is_held_by(program, finding))
        rate = float(ratio is not None and 1 / RATE_FACTOR <= ratio <= RATE_FACTOR)
    return Answer(
        name=program.name,
        variant=program.variant,
        expected=program.expected,
        got=str(said.get("verdict") or "-"),
        verdict=VERDICT_SCORES[program.leaks].get(str(said.get("verdict")), 0.0),
        line=line,
        holder=holder,
        rate=rate,
        shape=str(lead.get("shape") or "-"),
        steps=steps,
        steps_from=str(said.get("steps_from") or "-"),
        bytes_per_step=float((lead.get("bytes_per_step") or {}).get("value") or 0.0),
        rate_ratio=ratio,
        first=_in_short(findings[0]) if findings else "",
        unexplained=_unexplained(program, said),
        seconds=seconds,
        because=str(said.get("because") or ""),
        note=note,
    )


def _unexplained(program: Program, said: dict[str, Any]) -> float | None:
    if not program.holder_names or said.get("verdict") != "leak":
        return None
    explained = sum(float(finding["share"]) for finding in said["findings"])
    return max(1.0 - explained, 0.0)


def _first_match(
    findings: Sequence[dict[str, Any]], is_true: Callable[[dict[str, Any]], bool]
) -> float:
    """1 if it is true of the first finding, 1/2 if of the second or third."""
    for rank, finding in enumerate(findings[:3]):
        if is_true(finding):
            return 0.5 if rank else 1.0
    return 0.0


def _places(finding: dict[str, Any]) -> Iterator[str]:
    """Keeper and site as the truth writes them: "leaky.py:12"."""
    for key in ("keeper", "site"):
        place = finding.get(key)
        if place:
            yield f"{Path(place.get('file') or '').name}:{place.get('line')}"


def _is_held_by(program: Program, finding: dict[str, Any]) -> bool:
    """Whether a true name is in the holder path, as a whole word."""
    path = " ".join(map(str, finding.get("holder") or []))
    names = "|".join(map(re.escape, program.holder_names))
    return re.search(rf"(?<![A-Za-z0-9_])(?:{names})(?![A-Za-z0-9_])", path) is not None


def _nearest_ratio(program: Program, said: dict[str, Any], steps: int) -> float | None:
    """Growth that was said over growth that was measured, of all pairs the one nearest to 1."""
    rates = [finding.get("bytes_per_step") for finding in (said.get("findings") or [])[:1]]
    growing = (v for v in said.get("verdicts") or [] if v.get("outcome") in GROWS)
    rates += [(verdict.get("bytes_per_step") or {}).get("value") for verdict in growing]
    ratios = [rate * steps / grown for rate in rates if rate for grown in program.grown_bytes]
    return min((r for r in ratios if r > 0), key=lambda r: max(r, 1 / r), default=None)


def _in_short(finding: dict[str, Any]) -> str:
    place = next(_places(finding), "-")
    path = " > ".join(map(str, finding.get("holder") or [])) or "-"
    return f"{finding.get('rule')} {place} {path}"


def print_row(answers: Sequence[Answer]) -> None:
    """One program; of several runs all verdicts are shown, and the mean of the scores."""
    first = answers[0]
    got = " ".join(answer.got for answer in answers)
    right = sum(answer.is_right for answer in answers)
    mark = "ok" if right == len(answers) else f"{right} of {len(answers)}"
    if any(answer.is_false_alarm for answer in answers):
        mark += ", false alarm"
    scores = " ".join(f"{name} {_mean(answers, name):>4}" for name in SCORES)
    ratios = " ".join(f"{a.rate_ratio:.2f}" for a in answers if a.rate_ratio is not None)
    notes = " ".join(sorted({answer.note for answer in answers if answer.note}))
    seconds = statistics.median(answer.seconds for answer in answers)
    print(
        f"{first.name:30} {first.variant:6} expected {first.expected:7} got {got:8} {scores} "
        f"x{ratios or '-':5} {seconds:4.0f} s  {mark} {notes} {first.first[:100]}".rstrip(),
        flush=True,
    )


def page(answers: Sequence[Answer]) -> str:
    """All answers as a document: a row per program, and the sums."""
    lines = [
        "# How it does on whole programs",
        "",
        "Written by `bench/zoo.py --markdown`; do not edit it by hand. Each folder of "
        "[zoo/cpu](../zoo/README.md) has a program that leaks, or looks as if it did, and its "
        "cure.",
        "",
        f"Measured on {date.today()} on a machine with {os.cpu_count()} cores, Linux, Python "
        f"{platform.python_version()}. Scores are explained at the top of `bench/zoo.py`.",
        "",
        "| program | variant | is | leakscope said | first finding | line | holder | rate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for answer in answers:
        scores = (f"{s:g}" if (s := getattr(answer, name)) is not None else "" for name in SCORES)
        _, line, holder, rate = scores
        rule = answer.first.partition(" ")[0]
        lines.append(
            f"| {answer.name} | {answer.variant} | {answer.expected} | {answer.got} | {rule} | "
            f"{line} | {holder} | {rate} |"
        )
    return "\n".join([*lines, "", "```text", *summary(answers), "```", ""])


def summary(answers: Sequence[Answer]) -> list[str]:
    leaks = [answer for answer in answers if answer.expected in GROWS]
    harmless = [answer for answer in answers if answer.expected not in GROWS]
    lines = [
        f"leaks    {len(leaks):4}  found {_share(sum(a.is_right for a in leaks), len(leaks))}, "
        f"called LEAK {_share(sum(a.got == 'leak' for a in leaks), len(leaks))}",
        "               " + "  ".join(f"{name} {_sum(leaks, name)}" for name in SCORES),
        f"harmless {len(harmless):4}  steady "
        f"{_share(sum(answer.is_right for answer in harmless), len(harmless))}, "
        f"false alarms {sum(answer.is_false_alarm for answer in harmless)} "
        f"(LEAK {sum(answer.got == 'leak' for answer in harmless)}), "
        f"verdict {_sum(harmless, 'verdict')}",
    ]
    unexplained = {answer.name: answer.unexplained for answer in leaks}
    told = {name: share for name, share in unexplained.items() if share is not None}
    if told:
        worst = max(told, key=told.__getitem__)
        lines.append(
            f"not explained, of leaks that Python objects hold: median "
            f"{statistics.median(told.values()):.1%}, below 10 % in "
            f"{_share(sum(share < 0.1 for share in told.values()), len(told))}, "
            f"most {told[worst]:.0%} ({worst})"
        )
    if answers:
        seconds = statistics.median(answer.seconds for answer in answers)
        lines.append(f"seconds a run: median {seconds:.1f}")
    return lines


def _values(answers: Sequence[Answer], score: str) -> list[float]:
    values = (getattr(answer, score) for answer in answers)
    return [value for value in values if value is not None]


def _mean(answers: Sequence[Answer], score: str) -> str:
    values = _values(answers, score)
    return f"{statistics.fmean(values):.2g}" if values else "-"


def _sum(answers: Sequence[Answer], score: str) -> str:
    values = _values(answers, score)
    return f"{sum(values):g} of {len(values)} ({statistics.fmean(values):.1%})" if values else "-"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--zoo", type=Path, default=ZOO, help="folder of the programs")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the document here")
    parser.add_argument("--reports", type=Path, metavar="FOLDER", help="keep the reports here")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="keep these here")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one run")
    options = parser.parse_args(arguments)
    if options.reports:
        options.reports.mkdir(parents=True, exist_ok=True)

    def ask(program: Program) -> list[Answer]:
        asked = (options.python, options.limit, options.reports, options.recordings)
        return [watch(program, *asked) for _ in range(options.repeat)]

    everything: list[Answer] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        asked = programs(options.zoo, options.only, options.variant or VARIANTS)
        for answers in pool.map(ask, asked):
            print_row(answers)
            everything += answers
            if options.json:
                rows = [asdict(answer) for answer in everything]
                options.json.write_text(json.dumps(rows, indent=1))
    print("", *summary(everything), sep="\n")
    if options.markdown:
        options.markdown.write_text(page(everything))
    is_wrong = any(a.is_false_alarm or (a.expected in GROWS and not a.is_right) for a in everything)
    return int(is_wrong or not everything)


if __name__ == "__main__":
    sys.exit(main())
