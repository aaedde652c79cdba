"""What watching costs: each workload bare, under leakscope, memray and tracemalloc, interleaved.

One round runs every variant once, in an order that changes from round to round; the ratio of a
variant is taken to the bare run of the same round, and the table gives the median over rounds with
the quartiles. `bare again` is the same program as `bare`: its spread is the noise of the machine.
The time is that of the loop inside the program, after a warm-up; CPU time of the process beside it.

    python bench/cost.py --rounds 15 --markdown docs/cost.md
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

HERE = pathlib.Path(__file__).parent
WORKLOADS = {
    "mlp": ("mlp.py", "10000"),
    "transformer": ("transformer.py", "120"),
    "inference": ("inference.py", "12000"),
    "inference, tiny requests": ("inference.py", "40000", "40"),
    "leak being chased": ("leaking.py", "12000"),
}
VARIANTS = ("bare", "bare again", "leakscope", "memray", "tracemalloc")


def command(variant: str, workload: str, scratch: str) -> list[str]:
    file, *arguments = WORKLOADS[workload]
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


def loop_seconds(words: list[str]) -> tuple[float, float]:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    wall, cpu = done.stdout.split()[-2:]
    return float(wall), float(cpu)


def measure(
    workload: str, rounds: int, variants: tuple[str, ...]
) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU ratios to the bare run of the same round, per variant."""
    ratios: dict[str, list[tuple[float, float]]] = {variant: [] for variant in variants[1:]}
    with tempfile.TemporaryDirectory() as scratch:
        for index in range(rounds):
            turn = index % len(variants)
            order = variants[turn:] + variants[:turn]
            times = {
                variant: loop_seconds(command(variant, workload, scratch)) for variant in order
            }
            wall, cpu = times["bare"]
            for variant in variants[1:]:
                ratios[variant].append((times[variant][0] / wall, times[variant][1] / cpu))
            print(workload, index, {k: f"{w:.2f}s" for k, (w, _) in times.items()}, file=sys.stderr)
    return ratios


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

    words = [sys.executable, str(HERE / "workloads" / "mlp.py"), "200"]
    added = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            added.append(_peak_of(words, environment_for(scratch)) - _peak_of(words, None))
    return statistics.median(added)


def _peak_of(words: list[str], environment: dict[str, str] | None) -> int:
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
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
    parser.add_argument("--rounds", type=int, default=15)
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
    for workload in options.only:
        ratios = measure(workload, options.rounds, tuple(options.variants))
        for variant, pairs in ratios.items():
            wall, cpu = (quartiles([pair[index] for pair in pairs]) for index in (0, 1))
            lines.append(f"| {workload} | {variant} | {wall} | {cpu} |")
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
