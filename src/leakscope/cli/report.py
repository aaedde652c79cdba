"""Report on a recording made earlier.

leakscope report .leakscope/train-20261115-101500-4711
leakscope report RUN --format json -o report.json
"""

from __future__ import annotations

import argparse
import os
import sys

from leakscope.cli.output import FORMATS, format_of, write_report
from leakscope.render import formats, render
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording")
    parser.add_argument("--format", help=", ".join(formats()))
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")


def run(options: argparse.Namespace) -> int:
    # numpy and scipy are loaded for the commands that need them only
    from leakscope.analysis import analyse, load

    report = analyse(load(options.recording))
    if options.output:
        known = os.path.splitext(options.output)[1].lower() in FORMATS
        chosen = options.format or (format_of(options.output) if known else "terminal")
        write_report(report, options.output, chosen)
        return 0
    style = Style.of(sys.stdout, recording=options.recording)
    sys.stdout.write(render(report, options.format or "terminal", style))
    return 0
