"""Which rule speaks about which program: every rule's own pair of the zoo, run for real.

    python bench/matrix.py                          all pairs, written to tests/golden/
    python bench/matrix.py --only hook-every-step   one pair; the other rows stay as they are
    python bench/matrix.py --zoo zoo-tf             those that need TensorFlow or JAX

A pair with `rule = "LS301"` in its expected.toml is that rule's own: the rule is the one of the
first finding on leaky.py (for what is no leak: among the notes), and is silent on fixed.py. No
other rule's pair may have it, unless its `also_rule` says so.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "zoo"
ZOO_GPU = ZOO.parent / "zoo-gpu"
ZOO_TF = ROOT / "zoo-tf"
"""In a folder of their own: where the others run there is no TensorFlow."""
GOLDEN = ROOT / "tests" / "golden" / "rule-matrix.txt"
GOLDEN_TF = ROOT / "tests" / "golden" / "rule-matrix-tf.txt"
_HARMLESS = "LS0"
_NOBODY = "-"
_LIMIT_S = 180.0


@dataclass(frozen=True)
class Pair:
    """A rule's own pair, or one that another rule may speak about too."""

    name: str
    rule: str
    also: frozenset[str]
    steps: int | None
    """As many as the rule needs, where that is fewer than the truth is told for."""
    zoo: Path = ZOO

    @property
    def is_harmless(self) -> bool:
        return self.rule.startswith(_HARMLESS)


@dataclass(frozen=True)
class Said:
    """What leakscope said about one program."""

    first: tuple[str, ...]
    """The rule of the first finding; of a pair about what is no leak, those of all notes."""
    everything: frozenset[str]
    """All rules of findings and notes."""
    trouble: str = ""
    """Why there is no answer."""

    @property
    def shown(self) -> str:
        return self.trouble or " ".join(self.first) or _NOBODY


@dataclass(frozen=True)
class Row:
    """One line of the matrix."""

    name: str
    leaky: str
    fixed: str

    def __str__(self) -> str:
        return f"{self.name:32} leaky {self.leaky:8} fixed {self.fixed}"


def pairs(folder: Path = ZOO) -> Iterator[Pair]:
    """Every pair that is a rule's own, by the number of the rule."""
    found = []
    for file in folder.glob("*/expected.toml"):
        truth = tomllib.loads(file.read_text())
        if "rule" in truth:
            also = truth.get("also_rule", [])
            also = [also] if isinstance(also, str) else also
            steps = truth.get("rule_steps")
            found.append(Pair(file.parent.name, truth["rule"], frozenset(also), steps, folder))
    return iter(sorted(found, key=lambda pair: (pair.rule, pair.name)))


def run(pair: Pair, variant: str) -> Said:
    """Run one program as a user would, and read which rules the report has."""
    environment = {name: value for name, value in os.environ.items() if name != "ZOO_STEPS"}
    if pair.steps is not None:
        environment["ZOO_STEPS"] = str(pair.steps)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "leakscope", "run", "--quiet"]
        command += ["--out", str(Path(folder, "run")), "--report", str(report), f"{variant}.py"]
        done = subprocess.run(
            command,
            cwd=pair.zoo / pair.name,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            env=environment,
            check=False,
        )
        if done.returncode or not report.exists():
            lines = done.stderr.strip().splitlines() or ["no report"]
            # leakscope has the last word; what ended the program stands above it.
            own = [line for line in lines if not line.startswith("leakscope: ")] or lines
            return Said((), frozenset(), own[-1])
        return said_in(json.loads(report.read_text()), is_harmless=pair.is_harmless)


def said_in(report: dict[str, Any], *, is_harmless: bool) -> Said:
    findings = [str(one["rule"]) for one in report["findings"]]
    notes = sorted({str(one["rule"]) for one in report["harmless"]})
    first = notes if is_harmless else findings[:1]
    return Said(tuple(first), frozenset([*findings, *notes]))


def row_of(pair: Pair) -> Row:
    return Row(pair.name, run(pair, "leaky").shown, run(pair, "fixed").shown)


def table(rows: Sequence[Row]) -> str:
    return "".join(f"{row}\n" for row in rows)


def rows_in(text: str) -> list[Row]:
    """The rows of a table that was written."""
    rows = []
    for line in text.splitlines():
        name, _, rest = line.partition(" leaky ")
        leaky, _, fixed = rest.partition(" fixed ")
        rows.append(Row(name.strip(), leaky.strip(), fixed.strip()))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--zoo", type=Path, default=ZOO)
    options = parser.parse_args(arguments)
    zoo = options.zoo.resolve()
    golden = GOLDEN_TF if zoo == ZOO_TF else GOLDEN
    known = golden.read_text(encoding="utf-8") if golden.exists() else ""
    rows = {row.name: row for row in rows_in(known)}
    for pair in pairs(zoo):
        if not options.only or pair.name in options.only:
            rows[pair.name] = row_of(pair)
            print(pair.rule, rows[pair.name], flush=True)
    in_order = [rows[pair.name] for pair in pairs(zoo) if pair.name in rows]
    golden.write_text(table(in_order), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
