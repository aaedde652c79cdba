"""What watching eight loader workers costs: the loader bare and under leakscope, in turns.

Both are alive at once and fetch a block of batches each in turn, as in `bench/cost.py`. What
counts is the processor time of the whole family, workers included, and the time on the clock: each
to the bare program's of the same round. `bare again` is the noise. The supervisor reads on while
the others have their turn, and slows them as much as its own program: what it takes is counted
apart, while its program has its turn, and added.

    python bench/workers.py --rounds 7 --markdown docs/cost-workers.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack

from cost import HERE, quartiles
from leakscope.observe.processes.proc_files import find_tree

_WARM_UP = 4
"""Blocks before the clock starts: workers are forked, and rows are dense at first."""
_VARIANTS = ("bare", "bare again", "leakscope")


class Family:
    """A loader with its workers, alive and waiting for its turn."""

    def __init__(self, variant: str, workers: int, scratch: str) -> None:
        program = [str(HERE / "workloads" / "eight_workers.py"), str(workers)]
        words = [sys.executable, *program]
        self._is_watched = variant == "leakscope"
        if self._is_watched:
            out = os.path.join(scratch, "run")
            shutil.rmtree(out, ignore_errors=True)
            words = [sys.executable, "-m", "leakscope", "run", "--quiet", "--out", out, *program]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.wall = self.cpu = self.beside = self._began_s = 0.0

    def __enter__(self) -> Family:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, steps: int) -> None:
        assert self._process.stdin
        assert self._process.stdout
        before_s = self._beside_s()
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        wall, _ = map(float, self._process.stdout.readline().split())
        self.wall += wall
        self.beside += self._beside_s() - before_s

    def begin(self) -> None:
        self.wall = self.beside = 0.0
        self._began_s = self._cpu_s()

    def end(self) -> None:
        """Workers fetch ahead while others have their turn, so it is the whole time that counts."""
        self.cpu = self._cpu_s() - self._began_s

    def _cpu_s(self) -> float:
        """Of the program and its workers; the supervisor, which is beside them, is left out."""
        return sum(
            cpu_s(found.pid)
            for found in find_tree(self._process.pid)[1 if self._is_watched else 0 :]
        )

    def _beside_s(self) -> float:
        """Of the supervisor, where there is one."""
        return cpu_s(self._process.pid) if self._is_watched else 0.0


def cpu_s(pid: int) -> float:
    """Of all threads that a process has now."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_bytes().split()[0]) for task in tasks) / 1e9


def compete(workers: int, block: int, blocks: int) -> dict[str, Family]:
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        families = {
            variant: stack.enter_context(Family(variant, workers, scratch)) for variant in _VARIANTS
        }
        for family in families.values():
            family.run(_WARM_UP * block)
            family.begin()
        for index in range(blocks):
            turn = index % len(_VARIANTS)
            for variant in _VARIANTS[turn:] + _VARIANTS[:turn]:
                families[variant].run(block)
        for family in families.values():
            family.end()
    return families


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=int, default=120)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    ratios: dict[str, list[tuple[float, float, float]]] = {name: [] for name in _VARIANTS[1:]}
    for index in range(options.rounds):
        families = compete(options.workers, options.block, options.blocks)
        bare = families["bare"]
        for variant, triples in ratios.items():
            one = families[variant]
            all_cpu = one.cpu + one.beside
            triples.append((one.wall / bare.wall, one.cpu / bare.cpu, all_cpu / bare.cpu))
        print(index, {name: triples[-1] for name, triples in ratios.items()}, file=sys.stderr)
    lines = [
        "# What watching workers costs",
        "",
        "Generated by `bench/workers.py`; nothing here is typed by hand.",
        "",
        f"Measured on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{options.workers} workers, {options.rounds} rounds of {options.blocks} blocks of "
        f"{options.block} batches. Ratios to the bare program of the same round: median "
        "[quartiles]. `bare again` is the noise: the same program twice.",
        "",
        "| variant | wall | CPU of the program and its workers | the supervisor's too |",
        "|---|---|---|---|",
    ]
    for variant, triples in ratios.items():
        wall, cpu, every = (quartiles([pair[index] for pair in triples]) for index in range(3))
        lines.append(f"| {variant} | {wall} | {cpu} | {every} |")
    lines += [
        "",
        "The supervisor is a process of its own and is added while its program has its turn. The "
        "first four blocks, in",
        "which workers are forked and rows are dense, are not counted.",
    ]
    document = "\n".join(lines) + "\n"
    print(document)
    if options.markdown:
        options.markdown.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()
