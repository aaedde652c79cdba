"""Watch a program that already runs, from outside, then report.

leakscope attach 4711                until it ends, or Ctrl-C
leakscope attach 4711 --seconds 60
"""

from __future__ import annotations

import argparse
import math
import sys

from leakscope import errors
from leakscope.api import new_directory, write_header
from leakscope.cli.output import FORMATS, format_of, show, write_report
from leakscope.observe.processes.proc_files import command_of
from leakscope.onlook import Onlooker
from leakscope.record.format import name_process


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID", help="number of the process")
    parser.add_argument("--seconds", metavar="N", help="for so long (default: until it ends)")
    parser.add_argument("--out", metavar="DIR", help="folder of the recording")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help=f"also write the report here; format by ending ({', '.join(sorted(FORMATS))})",
    )
    parser.add_argument("--quiet", action="store_true", help="one line instead of the report")


def run(options: argparse.Namespace) -> int:
    for path in options.report:
        format_of(path)
    seconds = _seconds(options.seconds)
    process, command = _process(options.pid)
    directory = new_directory(options.out, [f"pid-{options.pid}"])
    settings = {"steps_from": "time", "watch": "outside", "process": process}
    write_header(directory, command, settings)
    print(f"leakscope: watching process {options.pid}; leakscope top {directory}", file=sys.stderr)
    Onlooker(directory, int(options.pid)).onlook(seconds)
    from leakscope.analysis import analyse, load

    report = analyse(load(directory))
    show(report, directory, sys.stderr, quiet=options.quiet)
    for path in options.report:
        write_report(report, path)
    return 0


def _process(word: str) -> tuple[str, tuple[str, ...]]:
    """What the process is called in a recording, and its command line."""
    try:
        return name_process(int(word)), command_of(int(word))
    except (OSError, ValueError):
        raise errors.no_such_process(word) from None


def _seconds(word: str | None) -> float | None:
    if word is None:
        return None
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise errors.bad_option("--seconds", word, "a number above 0", "--seconds 60")
    return seconds
