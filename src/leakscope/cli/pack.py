"""Pack a recording into Parquet: a tenth of its size, and fit for jobs of many ranks.

leakscope pack .leakscope/train-20261115-101500-4711
leakscope report .leakscope/train-20261115-101500-4711.packed
"""

from __future__ import annotations

import argparse
import os

from leakscope import text
from leakscope.engines import NAMES, engine_of


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="a new folder (default: RUN.packed beside it)"
    )
    parser.add_argument(
        "--engine",
        choices=NAMES,
        default="local",
        help="where files are packed: in this process, or as tasks of a Ray cluster",
    )


def run(options: argparse.Namespace) -> int:
    from leakscope.export.parquet import files_of, pack

    out = options.output or options.recording.rstrip("/") + ".packed"
    packed = pack(options.recording, out, engine_of(options.engine))
    size = sum(os.path.getsize(file) for file in files_of(out))
    rows = text.plural(packed.rows, "row")
    print(
        f"{rows}, {text.size(packed.size_bytes)} packed into {text.size(size)}; "
        f"next: leakscope report {out}"
    )
    return 0
