"""Run a program again and say whether its growth is gone.

  leakscope verify --before RUN                  the same command again, as the files are now
  leakscope verify --before RUN --apply-fix      the same with the diffs of RUN, in a copy
  leakscope verify --before RUN -- train.py      another command

The exit code is 0 if the growth is gone, 1 if it is not, 3 if the evidence does not decide.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from leakscope import errors, text
from leakscope.api import new_directory, write_header
from leakscope.cli.run import command_for
from leakscope.inject import environment_for
from leakscope.record.secrets import HIDDEN
from leakscope.supervise import Supervisor
from leakscope.verify import GROWS, Change, Verification, compare


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "leakscope verify --before RUN [options] [[--] script.py | -m module | command …]"
    )
    parser.add_argument("--before", metavar="RUN", required=True, help="recording that grew")
    parser.add_argument(
        "--apply-fix", action="store_true", help="make the changes of its findings, in a copy"
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the new recording")
    parser.add_argument("--report", metavar="FILE", help="also write the comparison here, as JSON")


TAKE_A_VALUE = {"--before", "--out", "--report"}


def run(options: argparse.Namespace) -> int:
    # numpy and scipy are loaded for the commands that need them only
    from leakscope.analysis import analyse, analyse_with_changes, load

    if options.report and not options.report.endswith(".json"):
        raise errors.unknown_format(options.report, (".json",))
    recording = load(options.before)
    made = recording.run
    command = command_for(options) if options.program else made.command
    if not options.program and any(HIDDEN in word for word in command):
        raise errors.hidden_words(options.before)
    before, changes = analyse_with_changes(recording)
    if before.verdict not in GROWS:
        raise errors.did_not_grow(options.before, before.verdict.value.upper())
    if options.apply_fix and not changes:
        raise errors.no_safe_fix(options.before)
    cwd = os.getcwd() if options.program else made.directory
    out = os.path.abspath(new_directory(options.out, command[1:] or command))
    if not options.apply_fix:
        _record(command, cwd, out, made.settings)
    else:
        from leakscope.attribute.suspects import sources_for
        from leakscope.fix.workspace import apply_changes, copy_program

        with tempfile.TemporaryDirectory(prefix="leakscope-") as folder:
            workspace = copy_program(_program_folder(command, cwd), folder, changes)
            apply_changes(workspace, changes, sources_for(recording, ""))
            for path in workspace.linked:
                print(f"leakscope: linked, not copied: {text.clean(path)}", file=sys.stderr)
            place = workspace.inside(cwd)
            _record(workspace.words(command, cwd), place, out, made.settings, workspace.inside)
    verification = compare(before, analyse(load(out)))
    if options.report:
        _write(verification, options.report)
    _tell(verification, out)
    return verification.exit_code


_NEAR = 2
"""So many folders a script may lie below the working directory for that to be the program's: a
home folder is none."""


def _program_folder(command: tuple[str, ...], cwd: str) -> str:
    """The folder of the script; the working directory where the script lies a little below it."""
    script = next((word for word in command[1:] if word.endswith(".py")), None)
    if script is None:
        return cwd
    folder = os.path.dirname(os.path.abspath(os.path.join(cwd, script)))
    below = os.path.relpath(folder, cwd)
    is_below = not below.startswith(os.pardir) and below.count(os.sep) < _NEAR
    return cwd if is_below else folder


def _record(
    command: tuple[str, ...],
    cwd: str,
    out: str,
    settings: dict[str, str],
    inside: Callable[[str], str] | None = None,
) -> None:
    steps_from = settings.get("steps_from", "auto")
    budget = float(settings.get("budget", "0.01"))
    with _working_in(cwd):
        write_header(out, command, {"steps_from": steps_from, "budget": f"{budget:g}"})
        environment = environment_for(out, steps_from=steps_from, budget=budget)
        if inside is not None and (path := environment.get("PYTHONPATH")):
            environment["PYTHONPATH"] = os.pathsep.join(map(inside, path.split(os.pathsep)))
        try:
            Supervisor(out, command, environment).run()
        except OSError as error:
            raise errors.command_not_found(command[0]) from error


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    back = os.getcwd()
    try:
        os.chdir(folder)
    except OSError as error:
        raise errors.cannot_copy(folder, error.strerror or str(error)) from None
    try:
        yield
    finally:
        os.chdir(back)


def _write(verification: Verification, path: str) -> None:
    content = msgspec.json.format(msgspec.json.encode(verification), indent=2) + b"\n"
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise errors.cannot_write(path, error.strerror or str(error)) from None


_WORDS = {
    Change.GONE: "GONE  The growth is gone",
    Change.SMALLER: "SMALLER  The growth is smaller",
    Change.UNCHANGED: "UNCHANGED  The growth is what it was",
    Change.LARGER: "LARGER  The growth is larger than it was",
    Change.UNKNOWN: "UNKNOWN  The evidence does not decide",
}


def _tell(verification: Verification, out: str) -> None:
    """On stderr: stdout is the program's."""
    because = text.clean(verification.because).strip().rstrip(".")
    lines = [f"{_WORDS[verification.change]}: {because}."]
    less = verification.less_bytes_per_step
    if less is not None:
        between = text.rate_between(less.low, less.high)
        lines.append(f"  fell by     {text.rate(less.value)} ({between})")
    for finding in verification.findings:
        rates = (
            f"{text.rate(finding.before_bytes_per_step)} → "
            f"{text.rate(finding.after_bytes_per_step)}"
        )
        where = f"   {text.clean(finding.where)}" if finding.where else ""
        lines.append(f"  {finding.change.value:<11} {finding.rule} {finding.name}: {rates}{where}")
    lines.append(f"  recording   {text.clean(out)}")
    print("\n".join(lines), file=sys.stderr)
