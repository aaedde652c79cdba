"""The command line: one file per command, each with `prepare(parser)` and `run(options)`."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from leakscope import __version__
from leakscope.cli.run import die_of, split_program
from leakscope.errors import LeakscopeError

COMMANDS = (
    "run", "attach", "top", "report", "merge", "pack", "fix", "verify",
    "export", "compare", "bisect", "lint", "explain", "env", "doctor",
)  # fmt: skip
"""In the order in which they are shown. Only the one that is called is imported: the report needs
scipy, which takes a second of processor time that the program should not wait for."""

_TAKE_A_PROGRAM = ("run", "verify", "bisect")


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="leakscope",
        description="Why does my training or inference job's memory keep growing?",
    )
    parser.add_argument("--version", action="version", version=f"leakscope {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    words = list(sys.argv[1:] if words is None else words)
    called = [words[0]] if words and words[0] in COMMANDS else COMMANDS
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in called}
    for name, module in modules.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        child = commands.add_parser(
            name, help=summary, description=module.__doc__, allow_abbrev=False
        )
        child.formatter_class = argparse.RawDescriptionHelpFormatter
        module.prepare(child)
    program: list[str] = []
    if words[:1] and words[0] in _TAKE_A_PROGRAM:
        own, program = split_program(words[1:], modules[words[0]].TAKE_A_VALUE)
        words = [words[0], *own]
    options = parser.parse_args(words)
    options.program = program
    try:
        return int(modules[options.command].run(options))
    except LeakscopeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `leakscope explain | head`: the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:  # while a report is made: no more to say, and no traceback
        die_of(signal.SIGINT)
        return 130
