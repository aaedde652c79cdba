"""Report on a recording made earlier.

leakscope report .leakscope/train-20261115-101500-4711
leakscope report RUN --format json -o report.json
leakscope report s3://bucket/job.packed      a packed recording, wherever fsspec reaches
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from leakscope.cli.output import FORMATS, format_of, write_report
from leakscope.engines import NAMES, engine_of, here
from leakscope.model import Report
from leakscope.render import render
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording, packed or not")
    parser.add_argument("--format", help="terminal, json or markdown")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")
    parser.add_argument(
        "--engine",
        choices=NAMES,
        default="local",
        help="where processes are read and judged: here, or as tasks of a Ray cluster",
    )


def run(options: argparse.Namespace) -> int:
    report = _analyse(options.recording, options.engine)
    if options.output:
        known = os.path.splitext(options.output)[1].lower() in FORMATS
        chosen = options.format or (format_of(options.output) if known else "terminal")
        write_report(report, options.output, chosen)
        return 0
    style = Style.of(sys.stdout, recording=options.recording)
    sys.stdout.write(render(report, options.format or "terminal", style))
    return 0


def _analyse(path: str, engine_name: str) -> Report:
    # numpy and scipy are loaded for the commands that need them only
    from leakscope.analysis import analyse, load
    from leakscope.export.packed import is_packed, read_packed

    engine = engine_of(engine_name)
    if not is_packed(path):
        return analyse(load(path), engine)
    from leakscope.export.statistics import band_of_packed

    # On this machine rows are read sooner than they are handed from process to process.
    reader = here if engine_name == "local" else engine
    return analyse(read_packed(path, reader), engine, partial(band_of_packed, path))
