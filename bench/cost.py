"""What watching costs: each workload bare, under leakscope, memray and tracemalloc, in turns.

All variants of a workload are alive at once and run a block of steps each in turn, about 0.1 s, in
an order that changes: a machine that is slower for seconds at a time (here by up to 60 %) is slower
for all of them. The ratio of a variant is its whole time to the whole time of the bare program
beside it, from the first block after the warm-up to the last (a leak that is chased has no warm-up:
the chase is what is measured); every round starts all processes
anew, because where memory happens to lie makes some processes faster than others. The table gives
the median over rounds with the quartiles. `bare again` is the same program as `bare`: its spread
is the noise.

Two processes of one program differ by up to 10 % here for as long as they live, which hides a cost
of 1 %. So every clean workload is measured a second way: one watched process runs its blocks by
turns with leakscope's hooks in place and without, and `deaf again` is its noise. What that leaves
out is the supervisor, which is another process and takes none of the program's time.

    python bench/cost.py --rounds 9 --markdown docs/cost.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent


class Workload(NamedTuple):
    words: tuple[str, ...]
    warm_up: int
    """Steps before the clock starts: none of them are counted, for any variant."""
    block: int
    blocks: int
    is_clean: bool = True


WORKLOADS = {
    "mlp": Workload(("mlp.py",), 200, 200, 60),
    "transformer": Workload(("transformer.py",), 10, 4, 60),
    "inference": Workload(("inference.py",), 200, 300, 60),
    "inference, tiny requests": Workload(("inference.py", "40"), 200, 1500, 60),
    "leak being chased": Workload(("leaking.py",), 5, 200, 80, is_clean=False),
}
VARIANTS = ("bare", "bare again", "leakscope", "memray", "tracemalloc")


def command(variant: str, workload: Workload, scratch: str) -> list[str]:
    file, *arguments = workload.words
    program = [str(HERE / "workloads" / file), *arguments]
    if variant == "leakscope":
        out = os.path.join(scratch, "run")
        shutil.rmtree(out, ignore_errors=True)
        return [sys.executable, "-m", "leakscope", "run", "--quiet", "--out", out, *program]
    if variant == "memray":
        out = os.path.join(scratch, "memray.bin")
        return [sys.executable, "-m", "memray", "run", "-q", "-f", "-o", out, *program]
    if variant == "tracemalloc":
        return [sys.executable, "-X", "tracemalloc=1", *program]
    return [sys.executable, *program]


class Contestant:
    """One variant of a workload, alive and waiting for its turn."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.wall = self.cpu = 0.0

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, steps: int, how: str = "") -> tuple[float, float]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{steps} {how}\n")
        self._process.stdin.flush()
        wall, cpu = map(float, self._process.stdout.readline().split())
        self.wall += wall
        self.cpu += cpu
        return wall, cpu

    def forget(self) -> None:
        self.wall = self.cpu = 0.0


def compete(workload: Workload, variants: tuple[str, ...]) -> dict[str, Contestant]:
    """All variants once, in turns."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        contestants = {
            variant: stack.enter_context(Contestant(command(variant, workload, scratch)))
            for variant in variants
        }
        for contestant in contestants.values():
            contestant.run(workload.warm_up)
            contestant.forget()
        for index in range(workload.blocks):
            turn = index % len(variants)
            for variant in variants[turn:] + variants[:turn]:
                contestants[variant].run(workload.block)
    return contestants


def measure(
    name: str, rounds: int, variants: tuple[str, ...]
) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU ratios to the bare run of the same round, per variant."""
    ratios: dict[str, list[tuple[float, float]]] = {variant: [] for variant in variants[1:]}
    for index in range(rounds):
        times = compete(WORKLOADS[name], variants)
        bare = times["bare"]
        for variant in variants[1:]:
            timed = times[variant]
            ratios[variant].append((timed.wall / bare.wall, timed.cpu / bare.cpu))
        told = {variant: f"{pairs[-1][0]:.3f}" for variant, pairs in ratios.items()}
        print(name, index, told, file=sys.stderr)
    return ratios


_HEARINGS = ("deaf", "heard", "deaf again")
_FINER = 3
"""Blocks are so many times shorter and more than those of whole processes: pairs of them are
compared, and the closer in time they are the more alike."""


def measure_in_one_process(name: str, rounds: int) -> dict[str, list[float]]:
    """CPU of every block that leakscope hears to the deaf blocks right beside it, and of the deaf
    blocks to each other."""
    ratios: dict[str, list[float]] = {"heard": [], "deaf again": []}
    workload = WORKLOADS[name]
    steps = max(workload.block // _FINER, 1)
    for _ in range(rounds):
        with ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
            watched = stack.enter_context(Contestant(command("leakscope", workload, scratch)))
            watched.run(workload.warm_up)
            for block in range(workload.blocks * workload.block // steps):
                turn = block % len(_HEARINGS)
                cpu = {
                    hearing: watched.run(steps, "" if hearing == "heard" else "deaf")[1]
                    for hearing in _HEARINGS[turn:] + _HEARINGS[:turn]
                }
                ratios["heard"].append(2 * cpu["heard"] / (cpu["deaf"] + cpu["deaf again"]))
                ratios["deaf again"].append(cpu["deaf again"] / cpu["deaf"])
        told = {hearing: f"{statistics.median(values):.4f}" for hearing, values in ratios.items()}
        print(name, "in one process, so far", told, file=sys.stderr)
    return ratios


def median_within(values: list[float]) -> str:
    """The median with the interval that holds it in 95 of 100 such measurements (by ranks)."""
    ranked = sorted(values)
    reach = 1.96 * len(ranked) ** 0.5 / 2
    low = ranked[max(int(len(ranked) / 2 - reach), 0)]
    high = ranked[min(int(len(ranked) / 2 + reach), len(ranked) - 1)]
    return f"{statistics.median(ranked):.4f} [{low:.4f}–{high:.4f}] of {len(ranked)} blocks"


def own_memory(steps: int) -> dict[str, float]:
    """What leakscope keeps in the program over many steps, and what it writes."""
    program = [str(HERE / "workloads" / "million.py"), str(steps)]
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "run")
        watched = subprocess.run(
            [sys.executable, "-m", "leakscope", "run", "--quiet", "--out", out, *program],
            capture_output=True,
            text=True,
            check=True,
        )
        written = sum(file.stat().st_size for file in pathlib.Path(out).iterdir())
    bare = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=True)
    rows = [[int(word) for word in line.split()] for line in watched.stdout.splitlines()]
    plain = [[int(word) for word in line.split()] for line in bare.stdout.splitlines()]
    return {
        "steps": steps,
        "in_use": rows[-1][2] - rows[0][2],
        "blocks": rows[-1][3] - rows[0][3],
        "rss": rows[-1][1] - rows[0][1],
        "rss_above": rows[-1][1] - plain[-1][1],
        "written": written,
    }


def agent_memory(rounds: int) -> float:
    """Bytes by which the agent raises the peak RSS of a PyTorch program: median over rounds."""
    from leakscope.inject import environment_for

    words = [sys.executable, str(HERE / "workloads" / "mlp.py")]
    added = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            added.append(_peak_of(words, environment_for(scratch)) - _peak_of(words, None))
    return statistics.median(added)


def _peak_of(words: list[str], environment: dict[str, str] | None) -> int:
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin
    process.stdin.write(b"200\n")
    process.stdin.close()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss * 1024


def start_up(rounds: int) -> tuple[float, float]:
    """CPU seconds that the bootstrap adds to a Python that never imports torch: median, noise."""
    from leakscope.inject import environment_for

    with tempfile.TemporaryDirectory() as scratch:
        watched = environment_for(scratch)
        added, noise = [], []
        for _ in range(rounds):
            first, with_us, second = (_cpu_of_python(env) for env in (None, watched, None))
            added.append(with_us - first)
            noise.append(abs(second - first))
    return statistics.median(added), statistics.median(noise)


def _cpu_of_python(environment: dict[str, str] | None) -> float:
    process = subprocess.Popen([sys.executable, "-c", "pass"], env=environment)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.3f} [{low:.3f}–{high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    lines = [
        "# What watching costs",
        "",
        "Generated by `bench/cost.py`; nothing here is typed by hand.",
        "",
        f"Measured on {datetime.date.today().isoformat()}: {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{options.rounds} rounds. Ratios to the bare program of the same round: median "
        "[quartiles]. `bare again` is the noise: the same program twice.",
        "",
        "| workload | variant | wall | CPU of the program |",
        "|---|---|---|---|",
    ]
    for workload in options.only if options.variants else ():
        ratios = measure(workload, options.rounds, tuple(options.variants))
        for variant, pairs in ratios.items():
            wall, cpu = (quartiles([pair[index] for pair in pairs]) for index in (0, 1))
            lines.append(f"| {workload} | {variant} | {wall} | {cpu} |")
    lines += ["", "## In one process, hooks in place and not by turns", ""]
    lines += ["| workload | blocks | CPU: median and its 95 % interval |", "|---|---|---|"]
    for workload in options.only:
        if WORKLOADS[workload].is_clean:
            for hearing, values in measure_in_one_process(workload, options.rounds).items():
                lines.append(f"| {workload} | {hearing} | {median_within(values)} |")
    if options.steps:
        memory = own_memory(options.steps)
        added, noise = start_up(15)
        rows = {
            "steps": f"{memory['steps']:,}",
            "bytes in use, from a tenth of the steps to the end": f"{memory['in_use']:+,}",
            "Python blocks, over the same": f"{memory['blocks']:+,}",
            "RSS, over the same": f"{memory['rss'] / 2**20:+.2f} MiB",
            "RSS above the program without leakscope": f"{memory['rss_above'] / 2**20:.1f} MiB",
            "peak RSS added to a PyTorch program": f"{agent_memory(5) / 2**20:.1f} MiB",
            "recording, per 100,000 steps": f"{memory['written'] / memory['steps'] / 10:.2f} MB",
            f"CPU at the start of a Python without torch (noise {noise * 1e3:.1f} ms)": (
                f"{added * 1e3:+.1f} ms"
            ),
        }
        lines += ["", "## leakscope's own memory and disk", "", "| what | measured |", "|---|---|"]
        lines += [f"| {what} | {value} |" for what, value in rows.items()]
    document = "\n".join(lines) + "\n"
    print(document)
    if options.markdown:
        options.markdown.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()
