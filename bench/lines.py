"""What line-by-line figures cost: functions bare, with @leakscope.lines and under memory_profiler.

All variants of a function are in one process and run a block each in turn, in an order that
changes. A variant is the same source compiled again, so that nothing is shared. The ratio is a
block's CPU time to that of the bare block beside it; the table has the median and the quartiles
over the rounds. `bare again` is the same as `bare`: its spread is the noise. `elsewhere` is a
function that is not watched, in a process where another one is. memory_profiler is used as its
decorator is, which makes a table for every call.

    python bench/lines.py --rounds 25 --markdown docs/lines-cost.md
"""

from __future__ import annotations

import argparse
import datetime
import io
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

FUNCTIONS = {
    "training step, PyTorch": (
        60,
        """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
batch = torch.randn(32, 64)
def work():
    out = model(batch)
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
""",
    ),
    "arrays, NumPy": (
        40,
        """
import numpy as np
source = np.random.default_rng(0).random((200, 100))
def work():
    product = source @ source.T
    centred = product - product.mean(axis=0)
    ordered = np.sort(centred, axis=1)
    return ordered.sum()
""",
    ),
    "records, plain Python": (
        20,
        """
import json
text = json.dumps({"a": list(range(20)), "b": "x" * 50, "c": {"d": 1.5}})
def work():
    out = []
    for index in range(100):
        record = json.loads(text)
        record["index"] = index
        record["sum"] = sum(record["a"])
        out.append(record)
    return len(out)
""",
    ),
    "tight loop, 30 ns a line": (
        4,
        """
def work():
    total = 0
    for index in range(5000):
        total += index * 2
        if total % 7 == 0:
            total -= 1
    return total
""",
    ),
}
VARIANTS = ("bare", "bare again", "@leakscope.lines", "memory_profiler", "elsewhere")


def make(folder: str, name: str, variant: str) -> Callable[[], object]:
    """The function of its own file: both tools read the source."""
    file = pathlib.Path(folder, f"{abs(hash((name, variant)))}.py")
    file.write_text(FUNCTIONS[name][1], encoding="utf-8")
    space: dict[str, Any] = {"__name__": file.stem}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    work = space["work"]
    if variant == "@leakscope.lines":
        import leakscope

        leakscope.lines(work)
    elif variant == "memory_profiler":
        import memory_profiler

        return memory_profiler.profile(work, stream=io.StringIO())  # type: ignore[no-any-return]
    return work  # type: ignore[no-any-return]


def block(work: Callable[[], object], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - began


def measure(name: str, rounds: int, folder: str) -> tuple[dict[str, list[float]], float]:
    calls = FUNCTIONS[name][0]
    works = {variant: make(folder, name, variant) for variant in VARIANTS}
    for variant in VARIANTS:
        block(works[variant], 1 if variant == "memory_profiler" else calls)
    ratios: dict[str, list[float]] = {variant: [] for variant in VARIANTS[1:]}
    bare_s = []
    for index in range(rounds):
        turn = index % len(VARIANTS)
        times = {}
        for variant in VARIANTS[turn:] + VARIANTS[:turn]:
            # Under memory_profiler a block takes so long that one call has to do.
            n = 1 if variant == "memory_profiler" else calls
            times[variant] = block(works[variant], n) / n
        bare_s.append(times["bare"])
        for variant in VARIANTS[1:]:
            ratios[variant].append(times[variant] / times["bare"])
    return ratios, statistics.median(bare_s)


def told(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", choices=sorted(FUNCTIONS))
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    # Threads of a library would run beside the function, and their time be counted with it.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    names = [options.only] if options.only else list(FUNCTIONS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            ratios, bare_s = measure(name, options.rounds, folder)
            cells = [told(ratios[variant]) for variant in VARIANTS[1:]]
            rows.append(f"| {name} | {bare_s * 1e6:,.0f} µs | {' | '.join(cells)} |")
            print(rows[-1], file=sys.stderr)
    head = [
        f"| function | bare call | {' | '.join(VARIANTS[1:])} |",
        f"|---|---|{'---|' * (len(VARIANTS) - 1)}",
    ]
    page = "\n".join([*head, *rows])
    print(page)
    if options.markdown:
        when = datetime.datetime.now(datetime.UTC).date()
        about = (
            f"Measured on {when} with Python {platform.python_version()}, "
            f"{options.rounds} rounds: CPU time over that of the bare function, median and "
            "quartiles. `bare again` is the noise. Written by `bench/lines.py`."
        )
        options.markdown.write_text(
            f"# What line-by-line figures cost\n\n{about}\n\n{page}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
