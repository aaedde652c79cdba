"""Show the changes that stop what a run found, or make them.

leakscope fix .leakscope/train-20261115-101500-4711
leakscope fix train.py               the newest recording of that script here
leakscope fix RUN --write            change the files; refuses what has changed since the run
"""

from __future__ import annotations

import argparse
import sys

from leakscope import errors, text
from leakscope.cli.recordings import find_recording


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", metavar="RUN", help="folder of the recording, or the script it is of"
    )
    parser.add_argument("--write", action="store_true", help="make the changes in the files")


def run(options: argparse.Namespace) -> int:
    from leakscope.analysis import analyse_with_changes, load
    from leakscope.attribute.suspects import sources_for
    from leakscope.fix.files import changed_files, write_files

    directory = find_recording(options.recording)
    recording = load(directory)
    analysis = analyse_with_changes(recording)
    if not analysis.changes:
        raise errors.no_safe_fix(directory)
    shown: set[str] = set()
    for finding in analysis.report.findings:
        diff = finding.fix.diff if finding.fix is not None else None
        if diff and diff not in shown:
            shown.add(diff)
            print(f"# {finding.rule} {finding.name}: {text.clean(finding.says)}")
            print("\n".join(text.clean(line) for line in diff.splitlines()))
    if options.write:
        files = changed_files(analysis.changes, sources_for(recording, ""))
        write_files(files)
        for path in files:
            print(f"leakscope: changed {text.clean(path)}", file=sys.stderr)
    return 0
