"""How long the linter takes for a line of source, beside what parsing alone takes.

    python bench/lint_speed.py FOLDER…       every Python file below; seven rounds, in turns

Prints microseconds per line (the median of the rounds) for `ast.parse` alone and for the linter
with its parsing, and the ratio of the two, which a slow or busy machine does not change.
"""

from __future__ import annotations

import argparse
import ast
import gc
import statistics
import time
import warnings
from collections.abc import Callable

from leakscope.lint.paths import Unread, python_files, read
from leakscope.lint.reading import hits_in

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    texts = [
        text for file in python_files(options.paths) if not isinstance(text := read(file), Unread)
    ]
    lines = sum(text.count("\n") for text in texts)
    warnings.simplefilter("ignore")
    gc.disable()
    parsing, linting = [], []
    for _ in range(options.rounds):
        parsing.append(_seconds(ast.parse, texts) / lines * 1e6)
        linting.append(_seconds(lambda text: hits_in(text, ""), texts) / lines * 1e6)
    ratio = statistics.median(b / a for a, b in zip(parsing, linting, strict=True))
    print(f"{len(texts)} files, {lines:,} lines, {options.rounds} rounds")
    print(f"parsing alone  {statistics.median(parsing):5.1f} µs a line")
    print(f"leakscope lint {statistics.median(linting):5.1f} µs a line")
    print(f"ratio          {ratio:5.2f}")


def _seconds(read_text: Callable[[str], object], texts: list[str]) -> float:
    """Processor time: the machine may have other things to do."""
    started = time.process_time()
    for text in texts:
        try:
            read_text(text)
        except (SyntaxError, ValueError):
            continue
    return time.process_time() - started


if __name__ == "__main__":
    main()
