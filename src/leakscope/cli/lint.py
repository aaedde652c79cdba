"""Look for leaks in source files, without running them.

leakscope lint src train.py
leakscope lint . --format sarif -o leaks.sarif
leakscope lint . --select LS101,LS102
"""

from __future__ import annotations

import argparse
import gc
import os
import sys

from leakscope import __version__, errors
from leakscope.lint.reading import load_checks
from leakscope.lint.running import Outcome, lint
from leakscope.lint.shown import to_json, to_sarif, to_text

_FORMATS = ("text", "json", "sarif")


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders")
    parser.add_argument("--format", default="text", help="text (default), json or sarif")
    parser.add_argument("--select", metavar="RULES", help="only these: LS101,LS205")
    parser.add_argument("--ignore", metavar="RULES", help="all but these")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")


def run(options: argparse.Namespace) -> int:
    if options.format not in _FORMATS:
        raise errors.unknown_format(options.format, _FORMATS)
    codes = _codes(options.select, options.ignore)
    for path in options.paths:
        if not os.path.exists(path):
            raise errors.no_such_path(path)
    # The trees of a file are in no cycle: collecting between them only costs time.
    gc.disable()
    outcome = lint(options.paths, codes)
    document = _document(outcome, options.format)
    if options.output:
        try:
            with open(options.output, "w", encoding="utf-8") as file:
                file.write(document)
        except OSError as error:
            raise errors.cannot_write(options.output, error.strerror or str(error)) from None
    else:
        sys.stdout.write(document)
    return 1 if outcome.hits else 0


def _document(outcome: Outcome, chosen: str) -> str:
    if chosen == "json":
        return to_json(outcome)
    return to_sarif(outcome, __version__) if chosen == "sarif" else to_text(outcome)


def _codes(select: str | None, ignore: str | None) -> set[str]:
    """The checks to make; a number that does not exist is a mistake of the user's."""
    known = {check.code for check in load_checks()[0]}
    chosen = _listed("--select", select, known) if select is not None else known
    return chosen - (_listed("--ignore", ignore, known) if ignore is not None else set())


def _listed(option: str, words: str, known: set[str]) -> set[str]:
    codes = {word.strip().upper() for word in words.split(",") if word.strip()}
    for code in sorted(codes - known):
        wanted = f"numbers of rules that show in the source: {', '.join(sorted(known))}"
        raise errors.bad_option(option, code, wanted, f"{option} LS101,LS102")
    return codes
