"""Show the page of a rule: why it leaks, an example, what to use instead.

leakscope explain LS101
leakscope explain            lists all rules
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.markdown import Markdown

from leakscope import errors
from leakscope.explain.catalogue import load_catalogue


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", help="number or name of a rule, such as LS101")


def run(options: argparse.Namespace) -> int:
    pages = load_catalogue().pages
    if options.rule is None:
        for one in pages:
            print(f"{one.code}  {one.name:36} {one.page.partition(chr(10))[0]}")
        return 0
    wanted = options.rule.lower()
    for one in pages:
        if wanted in (one.code.lower(), one.name):
            document = f"# {one.code} {one.name}\n\n{one.page}\n"
            if sys.stdout.isatty():
                Console().print(Markdown(document))
            else:
                print(document, end="")
            return 0
    raise errors.no_such_rule(options.rule)
