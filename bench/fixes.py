"""Runs the leaking programs of zoo/cpu/, makes the proposed changes in a copy, and runs that.

    python bench/fixes.py                          all of them
    python bench/fixes.py --only manual-sgd-losses
    python bench/fixes.py --markdown docs/fixing.md

For each program with a diff: the rule, the changed lines, what `leakscope verify --apply-fix` says
of them, and whether the program printed the same before and after. The exit code is 1 if a changed
program failed or printed something else.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ZOO = Path(__file__).resolve().parent.parent / "zoo" / "cpu"
BEGIN, END = "<!-- begin: measured by bench/fixes.py -->", "<!-- end: measured -->"


@dataclass(frozen=True)
class Row:
    """One program."""

    program: str
    rules: str
    """Those whose findings have the diff."""
    lines: tuple[str, ...]
    """What the diff adds."""
    change: str
    """gone, smaller, unchanged, larger or unknown; - without a diff."""
    is_same_output: bool | None
    rates: str
    note: str = ""

    @property
    def is_wrong(self) -> bool:
        return bool(self.lines) and self.is_same_output is False


def leaking(folder: Path, only: Sequence[str]) -> Iterator[Path]:
    for case in sorted(path.parent for path in folder.glob("*/expected.toml")):
        truth = tomllib.loads((case / "expected.toml").read_text())
        if truth["verdict"]["leaky"] == "leak" and (not only or case.name in only):
            yield case


def measure(case: Path, python: str, limit_s: float) -> Row:
    """As a user would: run it, then verify what is proposed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report, told = folder / "report.json", folder / "verify.json"
        ours = [python, "-m", "leakscope"]
        before = _run(
            [*ours, "run", "--quiet", "--out", str(folder / "before"), "--report", str(report),
             "leaky.py"], case, limit_s,
        )  # fmt: skip
        if before is None or not report.exists():
            return Row(case.name, "", (), "-", None, "", "no report")
        said = json.loads(report.read_text())
        findings = [one for one in said["findings"] if (one.get("fix") or {}).get("diff")]
        rules = " ".join(dict.fromkeys(one["rule"] for one in findings))
        if not findings:
            all_rules = " ".join(dict.fromkeys(one["rule"] for one in said["findings"]))
            return Row(case.name, all_rules, (), "-", None, "", said["verdict"])
        diffs = dict.fromkeys(one["fix"]["diff"] for one in findings)
        added = tuple(dict.fromkeys(line for diff in diffs for line in _added(diff)))
        after = _run(
            [*ours, "verify", "--before", str(folder / "before"), "--apply-fix", "--out",
             str(folder / "after"), "--report", str(told)], case, limit_s,
        )  # fmt: skip
        if after is None or not told.exists():
            last = (after.stderr.strip().splitlines() or [""])[0] if after is not None else "late"
            return Row(case.name, rules, added, "-", None, "", last[:80])
        verified = json.loads(told.read_text())
        is_same: bool | None = before.stdout == after.stdout
        if not is_same:
            again = _run([python, "leaky.py"], case, limit_s)
            if again is None or again.stdout != before.stdout:
                is_same = None  # it prints times or the like: unchanged, it differs too
        return Row(
            case.name,
            rules,
            added,
            verified["change"],
            is_same,
            _rates(verified),
            verified["because"],
        )


def _run(
    command: Sequence[str], folder: Path, limit_s: float
) -> subprocess.CompletedProcess[str] | None:
    environment = {name: value for name, value in os.environ.items() if name != "ZOO_STEPS"}
    try:
        return subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def _added(diff: str) -> Iterator[str]:
    for line in diff.splitlines():
        if line.startswith("+") and not line.startswith("+++"):
            yield line[1:].strip()


def _rates(verified: dict[str, Any]) -> str:
    before, after = verified["before_bytes_per_step"], verified["after_bytes_per_step"]
    if not before or not after:
        return ""
    return f"{_short(before['value'])} → {_short(after['value'])}"


def _short(rate: float) -> str:
    return f"{rate / 1024:,.1f} KiB"


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| rule | program | what the diff writes | verify | per step | same output |",
        "|---|---|---|---|---|---|",
    ]
    with_diff = [row for row in rows if row.lines]
    for row in sorted(with_diff, key=lambda row: (row.rules, row.program)):
        code = "<br>".join(f"`{line.replace('|', chr(92) + '|')}`" for line in row.lines)
        same = {True: "yes", False: "no", None: "varies"}[row.is_same_output]
        lines.append(
            f"| {row.rules} | {row.program} | {code} | {row.change} | {row.rates} | {same} |"
        )
    codes = sorted({rule for row in with_diff for rule in row.rules.split()})
    gone = sum(row.change == "gone" for row in with_diff)
    same_count = sum(row.is_same_output is True for row in with_diff)
    lines += [
        "",
        f"{len(with_diff)} of {len(rows)} leaking programs have a diff, under {len(codes)} rules "
        f"({', '.join(codes)}). Of these {gone} are gone by `verify`, and {same_count} printed "
        "the same, byte for byte.",
    ]
    return "\n".join(lines)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    page = path.read_text()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{tail}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--zoo", type=Path, default=ZOO)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds a run may take")
    parser.add_argument("--json", type=Path, help="every row, for machines")
    parser.add_argument("--markdown", type=Path, help="write the table into this page")
    options = parser.parse_args()
    rows = []
    for case in leaking(options.zoo, options.only):
        row = measure(case, options.python, options.limit)
        rows.append(row)
        same = {True: "same output", False: "OTHER OUTPUT", None: ""}[row.is_same_output]
        print(f"{row.program:30} {row.rules:12} {row.change:10} {same:12} {row.rates} {row.note}")
        for line in row.lines:
            print(f"{'':30} + {line}", flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))
    print()
    print(table(rows).splitlines()[-1])
    if options.markdown:
        write_table(options.markdown, rows)
    return int(any(row.is_wrong for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
