"""The command line: one file per command, each with `prepare(parser)` and `run(options)`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from leakscope import __version__
from leakscope.cli import (
    attach,
    bisect,
    compare,
    doctor,
    env,
    explain,
    export,
    fix,
    lint,
    merge,
    pack,
    report,
    run,
    top,
    verify,
)
from leakscope.errors import LeakscopeError

_COMMANDS = {
    "run": run,
    "attach": attach,
    "top": top,
    "report": report,
    "merge": merge,
    "pack": pack,
    "fix": fix,
    "verify": verify,
    "export": export,
    "compare": compare,
    "bisect": bisect,
    "lint": lint,
    "explain": explain,
    "env": env,
    "doctor": doctor,
}
_TAKE_A_PROGRAM = {
    "run": run.TAKE_A_VALUE,
    "verify": verify.TAKE_A_VALUE,
    "bisect": bisect.TAKE_A_VALUE,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="leakscope",
        description="Why does my training or inference job's memory keep growing?",
    )
    parser.add_argument("--version", action="version", version=f"leakscope {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        child = commands.add_parser(
            name, help=summary, description=module.__doc__, allow_abbrev=False
        )
        child.formatter_class = argparse.RawDescriptionHelpFormatter
        module.prepare(child)
    words = list(sys.argv[1:] if words is None else words)
    program: list[str] = []
    if words[:1] and words[0] in _TAKE_A_PROGRAM:
        own, program = run.split_program(words[1:], _TAKE_A_PROGRAM[words[0]])
        words = [words[0], *own]
    options = parser.parse_args(words)
    options.program = program
    try:
        return int(_COMMANDS[options.command].run(options))
    except LeakscopeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `leakscope explain | head`: the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:  # while a report is made: no more to say, and no traceback
        run.die_of(signal.SIGINT)
        return 130
