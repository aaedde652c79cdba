"""A job of many ranks that nobody has to run: what packing it and reporting on it take.

Writes a recording as 256 ranks would (20,000 steps, a row at each, two ranks of which leak), packs
it, and measures `leakscope report` on the Parquet as a user starts it: seconds and peak memory.

    python bench/scale.py --ranks 256 --steps 20000 --markdown docs/scale-measured.md
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from leakscope.export.parquet import Part, files_of, pack_file
from leakscope.model import (
    FORMAT_VERSION,
    Holding,
    Link,
    Machine,
    Mark,
    Moment,
    ProcessEnd,
    ProcessStart,
    Pulses,
    Run,
    Source,
)
from leakscope.observe.processes.proc_files import Watched, find_tree
from leakscope.record.format import SUFFIX, delta_code, write_run
from leakscope.record.writer import Writer

_STEP_NS = 50_000_000
_BLOCK = 128
_LEAKS = 40_960
"""Bytes a step of a leaking rank."""
_TEXT = "kept = []\n\n\ndef train():\n    kept.append(activations)\n"
_HOST_RANKS = 8
_GLANCE_S = 0.7
"""Reading a tree of 400 MB takes 30 ms, and holds it up meanwhile."""


class Job(NamedTuple):
    ranks: int
    steps: int
    leaking: tuple[int, ...]


def write_job(directory: str, job: Job) -> None:
    """The recording of a job, one file a rank, through the writer that a program uses."""
    os.makedirs(directory, exist_ok=True)
    machine = Machine("node0", "Linux", "3.11.7", 64, 1 << 40, limit_bytes=1 << 40)
    header = Run("job", FORMAT_VERSION, "0", 0, 0, ("torchrun", "train.py"), "/job", machine)
    write_run(directory, header)
    supervisor = Writer(os.path.join(directory, "supervisor.jsonl"))
    main = ProcessStart("1-1", 1, 0, _at(0), "main", command=("torchrun", "train.py"))
    supervisor.append(main)
    for rank in range(job.ranks):
        _write_rank(directory, rank, job)
    supervisor.append(ProcessEnd(_at(job.steps), "1-1", 0, None, {}))
    supervisor.close()


def _at(step: int, number: int | None = None) -> Moment:
    return Moment(step * _STEP_NS, step * _STEP_NS, number)


def _write_rank(directory: str, rank: int, job: Job) -> None:
    process, host = f"{1000 + rank}-7", f"node{rank // _HOST_RANKS}"
    file = f"{process}.{host}.rank{rank}.restart0{SUFFIX}"
    writer = Writer(os.path.join(directory, file))
    environment = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % _HOST_RANKS),
        "WORLD_SIZE": str(job.ranks),
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    writer.append(
        ProcessStart(
            process, 1000 + rank, 1, _at(0), "process", python="3.11.7", environment=environment
        )
    )
    random = np.random.default_rng(rank)
    steps = np.arange(1, job.steps + 1)
    grown = _LEAKS * steps if rank in job.leaking else np.zeros_like(steps)
    in_use = (1 << 30) + grown + random.integers(-200_000, 200_000, job.steps)
    columns = {
        "mono_ns": steps * _STEP_NS,
        "step": steps,
        "rss_bytes": in_use + (300 << 20) + random.integers(-4, 4, job.steps) * 4096 * 64,
        "in_use_bytes": in_use,
        "held_bytes": random.integers(10 << 20, 12 << 20, job.steps),
        "blocks_count": 400_000 + random.integers(-50, 50, job.steps),
        "collections_count": steps // 1000,
    }
    for begin in range(0, job.steps, _BLOCK):
        block = {
            name: delta_code(values[begin : begin + _BLOCK].tolist())
            for name, values in columns.items()
        }
        writer.append(Pulses(process, "optimizer", block, spent_ns=begin * 1000))
    if rank in job.leaking:
        _write_looks(writer, process, in_use, job.steps)
    writer.append(Mark(_at(job.steps, job.steps), process, "end", text="optimizer"))
    writer.close()


def _write_looks(writer: Writer, process: str, in_use: np.ndarray, steps: int) -> None:
    first, last = steps // 10, steps // 5
    for step in (first, last):
        values = {"in_use_bytes": int(in_use[step]), "blocks_count": 400_000}
        mark = Mark(_at(step, step), process, "look", values=values, source="optimizer")
        writer.append(mark)
    path = (
        Link("module train", "module", "module", "train", "/job/train.py"),
        Link(".kept", "list", "global", "kept", "/job/train.py"),
        Link("[x]", "Tensor [10240] float32", "item"),
    )
    counts = ((first, first), (last, last))
    item = "Tensor [10240] float32"
    held = Holding(_at(last, last), process, "container", path, 1, item, counts, _LEAKS)
    writer.append(held)
    writer.append(Source(process, "/job/train.py", _TEXT))


class Measured(NamedTuple):
    seconds: float
    peak_bytes: int
    report: dict[str, object]


def report_on(path: str, scratch: str, engine: str = "local") -> Measured:
    """`leakscope report` as a user starts it, on two cores."""
    out = os.path.join(scratch, f"report-{engine}.json")
    words = [sys.executable, "-m", "leakscope", "report", path, "-o", out, "--engine", engine]
    began = time.perf_counter()
    process = subprocess.Popen(words)
    highest = 0
    while process.poll() is None:
        highest = max(highest, _memory_of(process.pid))
        time.sleep(_GLANCE_S)
    if process.returncode:
        raise SystemExit(f"leakscope report ended with {process.returncode}")
    seconds = time.perf_counter() - began
    report = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
    return Measured(seconds, highest, report)


def _memory_of(pid: int) -> int:
    """Of a process and all below it, each shared page counted once (PSS)."""
    whole = 0
    for found in find_tree(pid):
        with suppress(OSError):
            watched = Watched(found)
            whole += watched.read_slow()[0].get("pss_bytes", 0)
            watched.close()
    return whole


def size_of(directory: str) -> int:
    return sum(os.path.getsize(file) for file in files_of(directory))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", help="keep the job here, and use the one that is there")
    parser.add_argument("--ray", action="store_true", help="the same with --engine ray")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    job = Job(options.ranks, options.steps, (options.ranks // 3, 2 * options.ranks // 3))
    scratch = options.scratch or tempfile.mkdtemp()
    directory, packed = os.path.join(scratch, "job"), os.path.join(scratch, "job.packed")
    if not os.path.exists(os.path.join(directory, "run.json")):
        write_job(directory, job)
    names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    probe = os.path.join(scratch, "probe")
    os.makedirs(os.path.join(probe, "records"), exist_ok=True)
    began = time.process_time()
    for name in names[:8]:
        pack_file(Part(directory, name, probe))
    per_rank_s = (time.process_time() - began) / min(len(names), 8)
    shutil.rmtree(probe)
    if not os.path.exists(packed):
        words = [sys.executable, "-m", "leakscope", "pack", directory, "-o", packed]
        subprocess.run(words, check=True)
    rounds = [report_on(packed, scratch) for _ in range(options.rounds)]
    best = min(rounds, key=lambda one: one.seconds)
    seconds = sorted(one.seconds for one in rounds)
    said = best.report["job"]
    assert isinstance(said, dict)
    written, parquet = size_of(directory), size_of(packed)
    rows = {
        "ranks × steps": f"{job.ranks} × {job.steps:,} = {job.ranks * job.steps:,} rows",
        "leaking ranks, as made": ", ".join(map(str, job.leaking)),
        "ranks that the report says deviate": ", ".join(map(str, said["deviating"])),
        "recording": f"{written / 1e6:,.0f} MB, {written / job.ranks / 1e6:.2f} MB a rank",
        "packed": f"{parquet / 1e6:,.0f} MB, {parquet / job.ranks / 1e6:.3f} MB a rank",
        "packing, CPU seconds a rank": f"{per_rank_s:.2f}",
        "`leakscope report`, seconds": " ".join(f"{one:.1f}" for one in seconds),
        "`leakscope report`, peak memory": f"{max(one.peak_bytes for one in rounds) / 1e6:.0f} MB",
    }
    if options.ray:
        other = report_on(packed, scratch, "ray")
        rows["with --engine ray, seconds (Ray's start included)"] = f"{other.seconds:.1f}"
        rows["the same report"] = str(other.report == best.report)
    lines = [
        "# A large job, measured",
        "",
        "Generated by `bench/scale.py`; nothing here is typed by hand.",
        "",
        f"Measured on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}.",
        "",
        "| what | measured |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
    ]
    document = "\n".join(lines) + "\n"
    print(document)
    if options.markdown:
        options.markdown.write_text(document, encoding="utf-8")
    if not options.scratch:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
