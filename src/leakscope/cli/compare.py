"""Lay two recordings side by side: what differs in memory, and which difference may be why.

leakscope compare RUN_A RUN_B
leakscope compare RUN_A RUN_B --format markdown -o issue.md
"""

from __future__ import annotations

import argparse
import os
import sys

from leakscope import errors
from leakscope.api import compare
from leakscope.cli.output import FORMATS, format_of
from leakscope.render.comparison import render_comparison
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="RUN_A", help="folder of a recording")
    parser.add_argument("b", metavar="RUN_B", help="folder of another")
    parser.add_argument("--format", help="terminal, json or markdown")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")


def run(options: argparse.Namespace) -> int:
    path = options.output
    known = path is not None and os.path.splitext(path)[1].lower() in FORMATS
    chosen = options.format or (format_of(path) if known else "terminal")
    if chosen not in FORMATS.values():
        raise errors.unknown_format(chosen, tuple(sorted(FORMATS.values())))
    comparison = compare(options.a, options.b)
    if path is None:
        sys.stdout.write(render_comparison(comparison, chosen, Style.of(sys.stdout)))
        return 0
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(render_comparison(comparison, chosen))
    except OSError as error:
        raise errors.cannot_write(path, error.strerror or str(error)) from None
    return 0
