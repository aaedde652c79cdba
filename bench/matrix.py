"""Which rule speaks about which program of the zoo: every entry, leaky and repaired, run for real.

    python bench/matrix.py                          all entries, written to tests/golden/
    python bench/matrix.py --only hook-every-step   one entry; the other rows stay as they are
    python bench/matrix.py --zoo zoo/tf             those that need TensorFlow or JAX
    python bench/matrix.py --zoo zoo/gpu            those that need a CUDA device
    python bench/matrix.py --jobs 7 --print         on a machine with more cores; writes nothing
    python bench/matrix.py --reports FOLDER         of programs that bench/zoo.py has run already

An entry with `rule = "LS301"` in its expected.toml is that rule's own: the rule speaks about its
leaky.py and is silent about its fixed.py. One with `pattern = "LS301"` shows the same pattern once
more. On any other entry the rule has to be silent, in findings and notes alike, whatever their
order; what a row has beyond its entry's rules is printed behind `stray`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "zoo" / "cpu"
ZOO_GPU = ROOT / "zoo" / "gpu"
ZOO_TF = ROOT / "zoo" / "tf"
"""In folders of their own: where the others run there is no TensorFlow, and no GPU."""
ZOOS = (ZOO, ZOO_TF, ZOO_GPU)
GOLDEN = ROOT / "tests" / "golden" / "rule-matrix.txt"
_NOBODY = "-"
_LIMIT_S = 300.0


@dataclass(frozen=True)
class Entry:
    """A pair of programs, and the rules that have something true to say about the leaky one."""

    name: str
    rule: str | None
    """Whose own pair it is."""
    patterns: frozenset[str]
    steps: int | None
    """As many as the rule needs, where that is fewer than the truth is told for."""
    zoo: Path = ZOO

    @property
    def label(self) -> str:
        return self.name if self.zoo == ZOO else f"{self.zoo.name}/{self.name}"

    @property
    def expected(self) -> frozenset[str]:
        return self.patterns | ({self.rule} if self.rule is not None else frozenset())


@dataclass(frozen=True)
class Said:
    """What leakscope said about one program."""

    rules: tuple[str, ...]
    """Those of its findings in their order, then those of its notes, each once."""
    trouble: str = ""
    """Why there is no answer."""
    verdict: str = ""

    @property
    def is_silent(self) -> bool:
        """It found too little to name anything, and said so."""
        return not self.rules and self.verdict in ("unknown", "growing")

    @property
    def is_alarm(self) -> bool:
        return bool(self.rules) or self.verdict in ("leak", "growing")

    @property
    def shown(self) -> str:
        return self.trouble or " ".join(self.rules) or _NOBODY


@dataclass(frozen=True)
class Row:
    """One line of the matrix."""

    name: str
    expected: str
    leaky: str
    fixed: str

    @property
    def stray(self) -> str:
        """Rules that spoke where they should not have."""
        on_leaky = set(self.leaky.split()) - {*self.expected.split(), _NOBODY}
        on_fixed = set(self.fixed.split()) - {_NOBODY}
        return " ".join(sorted(on_leaky | on_fixed))

    def __str__(self) -> str:
        said = f"{self.name:32} {self.expected:11} leaky {self.leaky:11} fixed {self.fixed}"
        return f"{said:70} stray {self.stray}" if self.stray else said


def entries(folder: Path = ZOO) -> Iterator[Entry]:
    """Those that are a rule's own first, by the number of the rule; then the others by name."""
    found = []
    for file in folder.glob("*/expected.toml"):
        truth = tomllib.loads(file.read_text())
        patterns = truth.get("pattern", [])
        patterns = [patterns] if isinstance(patterns, str) else patterns
        rule, steps = truth.get("rule"), truth.get("rule_steps")
        found.append(Entry(file.parent.name, rule, frozenset(patterns), steps, folder))
    return iter(sorted(found, key=lambda one: (one.rule is None, one.rule or "", one.name)))


def pairs(folder: Path = ZOO) -> Iterator[Entry]:
    """Every entry that is a rule's own."""
    return (entry for entry in entries(folder) if entry.rule is not None)


def run(entry: Entry, variant: str) -> Said:
    """Run one program as a user would, and read which rules the report has."""
    environment = {name: value for name, value in os.environ.items() if name != "ZOO_STEPS"}
    if entry.steps is not None:
        environment["ZOO_STEPS"] = str(entry.steps)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "leakscope", "run", "--quiet"]
        command += ["--out", str(Path(folder, "run")), "--report", str(report), f"{variant}.py"]
        try:
            done = subprocess.run(
                command,
                cwd=entry.zoo / entry.name,
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Said((), f"no answer in {_LIMIT_S:g} s")
        if done.returncode or not report.exists():
            lines = done.stderr.strip().splitlines() or ["no report"]
            # leakscope has the last word; what ended the program stands above it.
            own = [line for line in lines if not line.startswith("leakscope: ")] or lines
            return Said((), own[-1])
        return said_in(json.loads(report.read_text()))


def said_in(report: dict[str, Any]) -> Said:
    findings = [str(one["rule"]) for one in report["findings"]]
    notes = sorted(str(one["rule"]) for one in report["harmless"])
    rules = tuple(dict.fromkeys([*findings, *notes]))
    return Said(rules, verdict=str(report["verdict"]))


def row_of(entry: Entry, reports: Path | None = None) -> Row:
    """Its programs are run, unless a report of a run of all its steps lies in the folder."""
    expected = " ".join(sorted(entry.expected)) or _NOBODY
    said = []
    for variant in ("leaky", "fixed"):
        report = (reports or Path()) / f"{entry.name}-{variant}.json"
        is_kept = reports is not None and not entry.steps and report.exists()
        said.append(said_in(json.loads(report.read_text())) if is_kept else run(entry, variant))
    leaky, fixed = said
    return Row(entry.label, expected, leaky.shown, fixed.shown)


def table(rows: Sequence[Row]) -> str:
    return "".join(f"{row}\n" for row in rows)


def rows_in(text: str) -> list[Row]:
    """The rows of a table that was written."""
    rows = []
    for line in text.splitlines():
        name, _, rest = line.partition(" stray ")[0].partition(" ")
        expected, _, rest = rest.partition(" leaky ")
        leaky, _, fixed = rest.partition(" fixed ")
        rows.append(Row(name, expected.strip(), leaky.strip(), fixed.strip()))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--zoo", type=Path, default=ZOO, help="one of the three")
    parser.add_argument("--jobs", type=int, default=1, help="entries at once")
    parser.add_argument("--reports", type=Path, metavar="FOLDER", help="kept by bench/zoo.py")
    parser.add_argument("--print", action="store_true", help="leave the golden file as it is")
    options = parser.parse_args(arguments)
    zoo = options.zoo.resolve()
    if zoo not in ZOOS:
        parser.error(f"{zoo} is none of {', '.join(str(one.relative_to(ROOT)) for one in ZOOS)}")
    known = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    rows = {row.name: row for row in rows_in(known)}
    asked = [one for one in entries(zoo) if not options.only or one.name in options.only]
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda entry: row_of(entry, options.reports), asked):
            rows[row.name] = row
            print(row, flush=True)
    if not options.print:
        labels = [entry.label for one in ZOOS for entry in entries(one)]
        in_order = [rows[label] for label in labels if label in rows]
        GOLDEN.write_text(table(in_order), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
