"""What leakscope says and costs on a GPU: `make gpu-check`. Needs PyTorch with CUDA, no network.

    python bench/gpu_check.py                     everything, into bench/results/
    python bench/gpu_check.py --only zoo,oom      some of it

zoo         the programs of zoo/gpu/: verdict, line, holder and rate against the truth
situations  answers kept with and without graphs, cycles, kept or dropped, the four levels
match       for how many bytes in use a role and a holder are found
oom         an allocation that fails: what is told, and that the exception is the program's own
gaps        CUDA that is not there or not used
cost        against the bare program, beside the allocator's full history and torch's profiler
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ZOO = HERE.parent / "zoo" / "gpu"
WORKLOADS = HERE / "workloads"
RESULTS = HERE / "results"
_AT_ONCE = 4
_LIMIT_S = 150.0
_GROWS = ("growing", "leak")
_WITHIN = 0.05


class Watched(NamedTuple):
    """A program that was run under leakscope."""

    report: dict[str, Any]
    shown: str
    output: str
    status: int


def watch(program: pathlib.Path, *words: str, **environment: str) -> Watched:
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [sys.executable, "-m", "leakscope", "run", "--out", f"{folder}/run"]
        command += ["--report", str(report), program.name, *words]
        done = subprocess.run(
            command,
            cwd=program.parent,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            env={**os.environ, "COLUMNS": "100", **environment},
            check=False,
        )
        found = json.loads(report.read_text()) if report.exists() else {}
        return Watched(found, done.stderr, done.stdout, done.returncode)


# ── the zoo ──


@dataclass
class Answer:
    """What was said about one program, beside the truth."""

    name: str
    expected: str
    got: str
    shape: str
    is_right: bool
    rule: str
    line: str
    is_line_right: bool | None
    holder: str
    is_holder_right: bool | None
    bytes_per_step: float
    true_bytes_per_step: float
    steps: int
    seconds: float
    because: str
    harmless: str
    cost: float


def answers(keep: Callable[[str, str], None]) -> list[Answer]:
    folders = sorted(path.parent for path in ZOO.glob("*/expected.toml"))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda folder: _answer(folder, keep), folders))


def _answer(folder: pathlib.Path, keep: Callable[[str, str], None]) -> Answer:
    truth = tomllib.loads((folder / "expected.toml").read_text())
    watched = watch(folder / "leaky.py")
    keep(folder.name, watched.shown)
    report = watched.report
    expected = truth["verdict"]["leaky"]
    got = report.get("verdict", f"no report, status {watched.status}: {watched.shown[-400:]}")
    first = (report.get("findings") or [{}])[0]
    places = [_place(first.get(which)) for which in ("keeper", "site")]
    path = " · ".join(first.get("holder", ()))
    device = truth.get("device", "cuda:0")
    lead = _series(report, device)
    is_right = got == expected or (expected == "leak" and got == "growing")
    if "shape" in truth:
        is_right = is_right and lead.get("shape") == truth["shape"]
    leaks = expected == "leak"
    names = truth.get("holder_names", [])
    return Answer(
        name=folder.name,
        expected=expected,
        got=got,
        shape=lead.get("shape", ""),
        is_right=is_right,
        rule=first.get("rule", ""),
        line=" / ".join(place for place in places if place),
        is_line_right=any(place in truth["lines"] for place in places) if leaks else None,
        holder=path,
        is_holder_right=any(name in path for name in names) if leaks and names else None,
        bytes_per_step=lead.get("bytes_per_step", {}).get("value", 0.0),
        true_bytes_per_step=truth["bytes_per_step"],
        steps=report.get("steps", 0),
        seconds=report.get("seconds", 0.0),
        because=report.get("because", ""),
        harmless=" ".join(one["rule"] for one in report.get("harmless", ())),
        cost=report.get("cost", {}).get("agent_share", 0.0),
    )


def _place(site: dict[str, Any] | None) -> str:
    return f"{site['file']}:{site['line']}" if site else ""


def _series(report: dict[str, Any], device: str) -> dict[str, Any]:
    """The deciding series of a device: what grows first, or what is in use."""
    found = [one for one in report.get("verdicts", ()) if one["series"]["device"] == device]
    growing = [one for one in found if one["outcome"] in _GROWS]
    first: dict[str, Any] = (growing or found or [{}])[0]
    return first


# ── situations ──


def situations(keep: Callable[[str, str], None]) -> list[dict[str, Any]]:
    rows = []
    kept = [_answer(ZOO / name, keep) for name in ("outputs-with-graph", "outputs-detached")]
    for name, one in zip(("4.1 with graph", "4.1 detached"), kept, strict=True):
        ratio = one.bytes_per_step / one.true_bytes_per_step
        rows.append(
            {
                "situation": name,
                "said": f"{one.got}, {one.rule}, {one.line}, {one.holder}",
                "bytes per request": one.bytes_per_step,
                "of the truth": ratio,
                "is right": one.got == "leak"
                and bool(one.is_line_right and one.is_holder_right)
                and abs(ratio - 1) <= _WITHIN,
            }
        )
    cycles = _answer(ZOO / "cycles-collector-off", keep)
    ratio = cycles.bytes_per_step / cycles.true_bytes_per_step
    rows.append(
        {
            "situation": "4.2 cycles, collector off",
            "said": f"{cycles.got}, {cycles.rule}, {cycles.line}, {cycles.holder}",
            "bytes per request": cycles.bytes_per_step,
            "of the truth": ratio,
            "is right": cycles.got == "leak"
            and bool(cycles.is_holder_right)
            and abs(ratio - 1) <= _WITHIN,
        }
    )
    for mode, name in (("cycles", "4.2 cycles, collector on"), ("dropped", "4.3 dropped")):
        served = watch(WORKLOADS / "gpu_served.py", mode)
        keep(f"served-{mode}", served.shown)
        lead = _series(served.report, "cuda:0")
        rows.append(
            {
                "situation": name,
                "said": f"{served.report['verdict']}, {lead['shape']}: {served.report['because']}",
                "bytes per request": lead["bytes_per_step"]["value"],
                "of the truth": None,
                "is right": served.report["verdict"] == "steady",
            }
        )
    rows.append(_levels(keep))
    return rows


def _levels(keep: Callable[[str, str], None]) -> dict[str, Any]:
    """Beside another process on the same device: do the levels add up?"""
    code = "import sys, torch; x = torch.zeros(1 << 28, device='cuda'); "
    code += "print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        served = watch(WORKLOADS / "gpu_served.py", "dropped")
        asked = subprocess.run(
            ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert other.stdin is not None
        other.stdin.close()
    keep("levels", served.shown)
    (levels,) = served.report["devices"]
    parts = sum(levels["parts"].values())
    others = sum(int(line.split(",")[1]) << 20 for line in asked.stdout.splitlines() if line)
    return {
        "situation": "4.x four levels, beside another process",
        "said": f"{levels['says']}; parts {levels['parts']}; nvidia-smi has the other at {others}",
        "bytes per request": None,
        "of the truth": parts / levels["driver_bytes"] if levels["driver_bytes"] else None,
        "is right": parts == levels["driver_bytes"] and abs(levels["others_bytes"] - others) < 32e6,
    }


# ── the rest ──


def match(keep: Callable[[str, str], None]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "gpu_match.py"],
        cwd=WORKLOADS,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    keep("match", done.stdout + done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def oom(keep: Callable[[str, str], None]) -> dict[str, Any]:
    bare = subprocess.run(
        [sys.executable, "gpu_oom.py"],
        cwd=WORKLOADS,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    watched = watch(WORKLOADS / "gpu_oom.py")
    keep("oom", watched.shown)
    boxes = watched.report["black_boxes"]
    first = boxes[0] if boxes else {"contents": [{}], "spent_seconds": None, "says": ""}
    return {
        "bare": (bare.returncode, bare.stdout.strip()),
        "watched": (watched.status, watched.output.strip()),
        "is the same exception": (bare.returncode, bare.stdout) == (watched.status, watched.output),
        "boxes": [(box["where"], box["why"], box["spent_seconds"]) for box in boxes],
        "says": first["says"],
        "largest": first["contents"][:3],
        "matched": first.get("matched_share"),
        "verdict": watched.report["verdict"],
        "finding": [
            (one["rule"], _place(one["keeper"]), one["share"]) for one in watched.report["findings"]
        ],
        "culprit is named": "features" in json.dumps(first["contents"][:1]),
    }


def gaps(keep: Callable[[str, str], None]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    program = HERE.parent / "tests" / "programs" / "plain_training.py"
    for name, environment in (
        ("CUDA there and not used", {}),
        ("a driver, and no device for the program", {"CUDA_VISIBLE_DEVICES": ""}),
    ):
        watched = watch(program, **environment)
        keep(f"gaps-{len(rows)}", watched.shown)
        told = [gap for gap in watched.report["blind_spots"] if "GPU" in gap["what"]]
        rows.append({"case": name, "gaps": told, "verdict": watched.report["verdict"]})
    return rows


# ── cost ──


class Load(NamedTuple):
    file: str
    warm_up: int
    block: int
    blocks: int


LOADS = {
    "transformer, the GPU is busy": Load("gpu_transformer.py", 30, 8, 24),
    "MLP, the GPU waits for launches": Load("gpu_mlp.py", 1500, 150, 80),
}
VARIANTS = ("bare", "bare again", "leakscope", "history", "profiler")


class Running:
    """One variant of a workload, alive."""

    def __init__(self, load: Load, variant: str, folder: str) -> None:
        command = [sys.executable, load.file, variant]
        if variant == "leakscope":
            own = [sys.executable, "-m", "leakscope", "run", "--quiet"]
            command = [*own, "--out", f"{folder}/{load.file}", *command[1:]]
        self.process = subprocess.Popen(
            command,
            cwd=WORKLOADS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def block(self, steps: int, word: str = "") -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{steps} {word}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()


def cost(keep: Callable[[str, str], None]) -> list[dict[str, Any]]:
    return [row for name, load in LOADS.items() for row in _cost_of(name, load)]


def _cost_of(name: str, load: Load) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        running = {variant: Running(load, variant, folder) for variant in VARIANTS}
        for variant, one in running.items():
            one.block(load.warm_up if variant != "profiler" else load.block)
        times: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
        deaf: list[float] = []
        deaf_again: list[float] = []
        for turn in range(load.blocks):
            order = VARIANTS if turn % 2 else VARIANTS[::-1]
            for variant in order:
                # The profiler keeps every event: a few blocks of it are enough.
                if variant != "profiler" or turn % 6 == 0:
                    times[variant].append(running[variant].block(load.block))
                    if variant == "leakscope":
                        deaf.append(running[variant].block(load.block, "deaf"))
                        deaf_again.append(running[variant].block(load.block, "deaf"))
        for one in running.values():
            one.end()
    base = statistics.median(times["bare"]) / load.block
    for variant in VARIANTS:
        ratios = [took / load.block / base for took in times[variant]]
        low, _, high = statistics.quantiles(ratios, n=4)
        yield {
            "workload": name,
            "variant": variant,
            "ms a step": base * 1e3 * statistics.median(ratios),
            "ratio of medians": statistics.median(ratios),
            "ratio of sums": sum(times[variant])
            / len(times[variant])
            / (sum(times["bare"]) / len(times["bare"])),
            "quartiles": (low, high),
        }
    for variant, took in (
        ("leakscope, against the same process without its hooks", times["leakscope"]),
        ("the same without its hooks, twice (noise)", deaf_again),
    ):
        pairs = [one / off for one, off in zip(took, deaf, strict=True)]
        low, middle, high = statistics.quantiles(pairs, n=4)
        yield {
            "workload": name,
            "variant": variant,
            "ms a step": statistics.median(took) / load.block * 1e3,
            "ratio of medians": middle,
            "ratio of sums": sum(took) / sum(deaf),
            "quartiles": (low, high),
        }


# ── writing it down ──

SECTIONS: dict[str, Callable[[Callable[[str, str], None]], Any]] = {
    "zoo": answers,
    "situations": situations,
    "match": match,
    "oom": oom,
    "gaps": gaps,
    "cost": cost,
}


def summary(found: dict[str, Any]) -> list[str]:
    """What the check has to show, and whether it did."""
    lines = []
    if "zoo" in found:
        rows: list[Answer] = found["zoo"]
        leaks = [row for row in rows if row.expected == "leak"]
        lines += [
            f"verdict {sum(row.is_right for row in rows)}/{len(rows)}",
            f"called a leak, of those that leak {sum(row.got == 'leak' for row in leaks)}"
            f"/{len(leaks)}",
            f"line {sum(bool(row.is_line_right) for row in leaks)}/{len(leaks)}",
        ]
    if "situations" in found:
        right = sum(row["is right"] for row in found["situations"])
        lines.append(f"situations {right}/{len(found['situations'])}")
    if "match" in found:
        least = min((row["role_and_holder"] for row in found["match"]), default=0.0)
        lines.append(f"role and holder for at least {least:.2%} of the bytes in use")
    if "oom" in found:
        same, named = (found["oom"][key] for key in ("is the same exception", "culprit is named"))
        lines.append(f"out of memory: same exception {same}, culprit named {named}")
    if "cost" in found:
        lines += [
            f"cost, {row['workload']}: {row['variant']} {row['ratio of medians']:.4f} "
            f"(quartiles {row['quartiles'][0]:.4f} to {row['quartiles'][1]:.4f})"
            for row in found["cost"]
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--out", default=str(RESULTS), help="folder for what was found")
    options = parser.parse_args()
    import torch

    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    shown: list[str] = []

    def keep(name: str, text: str) -> None:
        shown.append(f"──── {name}\n{text}\n")

    device = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    found: dict[str, Any] = {}
    for name in options.only.split(","):
        began = datetime.datetime.now(datetime.UTC)
        try:
            found[name] = SECTIONS[name](keep)
        except Exception as error:  # noqa: BLE001 - the other sections are worth having
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        took = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
        print(f"{name}: {took:.0f} s", flush=True)
        for row in found[name] if isinstance(found[name], list) else [found[name]]:
            told = asdict(row) if isinstance(row, Answer) else row
            print("  " + json.dumps(told, ensure_ascii=False), flush=True)
        plain = {
            key: [asdict(row) if isinstance(row, Answer) else row for row in rows]
            if isinstance(rows, list)
            else rows
            for key, rows in found.items()
        }
        whole = {"date": today, "device": device, "summary": summary(found), **plain}
        (out / "gpu.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        (out / "gpu-reports.txt").write_text("\n".join(shown))
    print(f"{today} · {device}", *summary(found), sep="\n")


if __name__ == "__main__":
    main()
