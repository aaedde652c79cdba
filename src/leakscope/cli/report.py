"""Report on a recording made earlier.

  leakscope report .leakscope/train-20261115-101500-4711
  leakscope report RUN --format json -o report.json
"""

from __future__ import annotations

import argparse
import sys


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording")
    parser.add_argument("--format", default="terminal", help="terminal, json or markdown")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")


def run(options: argparse.Namespace) -> int:
    return 0
