"""Runs the labelled programs of zoo/ under leakscope and prints how often it was right.

    python bench/zoo.py                       every program once
    python bench/zoo.py --repeat 3            three times; an unstable answer is shown as such
    python bench/zoo.py --only replay-fills   one folder, both programs
    python bench/zoo.py --json out.json       every row, for machines

A leak counts as found if leakscope says GROWING or LEAK, a harmless program as right if it says
STEADY; GROWING or LEAK on a harmless program is a false alarm, UNKNOWN is neither. The rate is
right if rate times steps is within a factor of 2 of the truth: leakscope may count other steps
than the program does (a GAN has two optimizers, a pool of processes has none).

The exit code is 1 if there was a false alarm or a leak that was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ZOO = Path(__file__).resolve().parent.parent / "zoo"
VARIANTS = ("leaky", "fixed")
GROWS = ("growing", "leak")
RATE_FACTOR = 2.0


@dataclass(frozen=True)
class Program:
    """One program and the truth about it."""

    name: str
    variant: str
    path: Path
    expected: str
    grown_bytes: float
    """Rate times steps: what it grows by if it grows all the time; 0 if it does not grow."""


@dataclass(frozen=True)
class Answer:
    """What leakscope said about one run."""

    name: str
    variant: str
    expected: str
    got: str
    shape: str
    steps: int
    steps_from: str
    bytes_per_step: float
    rate_ratio: float | None
    """Growth that was judged over true growth; None where there is none."""
    seconds: float
    because: str
    note: str

    @property
    def is_right(self) -> bool:
        return self.got in GROWS if self.expected in GROWS else self.got == self.expected

    @property
    def is_false_alarm(self) -> bool:
        return self.expected not in GROWS and self.got in GROWS

    @property
    def is_rate_right(self) -> bool:
        return self.rate_ratio is not None and 1 / RATE_FACTOR <= self.rate_ratio <= RATE_FACTOR


def programs(folder: Path, only: Sequence[str], variants: Sequence[str]) -> Iterator[Program]:
    """The programs of the zoo, in the order of their names."""
    for case in sorted(path.parent for path in folder.glob("*/expected.toml")):
        if only and case.name not in only:
            continue
        truth = tomllib.loads((case / "expected.toml").read_text())
        for variant in variants:
            expected = str(truth["verdict"][variant])
            grown = float(truth.get("bytes_per_step", 0)) * float(truth["steps"])
            yield Program(
                case.name,
                variant,
                case / f"{variant}.py",
                expected,
                grown if expected in GROWS else 0.0,
            )


def watch(program: Program, python: str, limit_s: float) -> Answer:
    """Run one program as a user would, and read the report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [python, "-m", "leakscope", "run", "--quiet", "--out", str(Path(folder, "run"))]
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
    return _answer(program, said, seconds, note if said else note or "no report")


def _answer(program: Program, said: dict[str, Any], seconds: float, note: str) -> Answer:
    verdicts = said.get("verdicts") or [{}]
    lead = verdicts[0]
    rate = float((lead.get("bytes_per_step") or {}).get("value") or 0.0)
    steps = int(said.get("steps") or 0)
    ratio = None
    if program.expected in GROWS and said.get("verdict") in GROWS and program.grown_bytes > 0:
        ratio = rate * steps / program.grown_bytes
    return Answer(
        program.name,
        program.variant,
        program.expected,
        str(said.get("verdict") or "-"),
        str(lead.get("shape") or "-"),
        steps,
        str(said.get("steps_from") or "-"),
        rate,
        ratio,
        seconds,
        str(said.get("because") or ""),
        note,
    )


def print_table(groups: Iterable[list[Answer]]) -> None:
    for answers in groups:
        first = answers[0]
        got = " ".join(answer.got for answer in answers)
        ratios = " ".join(f"{a.rate_ratio:.2f}" for a in answers if a.rate_ratio is not None)
        right = sum(answer.is_right for answer in answers)
        mark = "ok" if right == len(answers) else f"{right} of {len(answers)}"
        if any(answer.is_false_alarm for answer in answers):
            mark += ", false alarm"
        notes = " ".join(sorted({answer.note for answer in answers if answer.note}))
        print(
            f"{first.name:26} {first.variant:6} expected {first.expected:8} got {got:24} "
            f"rate x{ratios or '-':15} {mark} {notes}",
            flush=True,
        )


def print_summary(answers: Sequence[Answer]) -> None:
    leaks = [answer for answer in answers if answer.expected in GROWS]
    harmless = [answer for answer in answers if answer.expected not in GROWS]
    found = [answer for answer in leaks if answer.is_right]
    print()
    print(f"leaks    {len(leaks):4}  found {_share(len(found), len(leaks))}")
    rates = sum(answer.is_rate_right for answer in leaks)
    print(f"               rate within a factor of 2 {_share(rates, len(leaks))}")
    print(
        f"harmless {len(harmless):4}  steady "
        f"{_share(sum(answer.is_right for answer in harmless), len(harmless))}, "
        f"false alarms {sum(answer.is_false_alarm for answer in harmless)}"
    )
    if answers:
        print(f"seconds a run: median {statistics.median(a.seconds for a in answers):.1f}")


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
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for one run")
    options = parser.parse_args(arguments)
    everything: list[Answer] = []
    for program in programs(options.zoo, options.only, options.variant or VARIANTS):
        answers = [watch(program, options.python, options.limit) for _ in range(options.repeat)]
        print_table([answers])
        everything += answers
        if options.json:
            rows = [asdict(answer) for answer in everything]
            options.json.write_text(json.dumps(rows, indent=1))
    print_summary(everything)
    is_wrong = any(a.is_false_alarm or (a.expected in GROWS and not a.is_right) for a in everything)
    return int(is_wrong or not everything)


if __name__ == "__main__":
    sys.exit(main())
