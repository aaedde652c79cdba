"""Make one recording of a job from those of its machines.

leakscope merge host-a/.leakscope/train-… host-b/.leakscope/train-… -o job
leakscope report job
"""

from __future__ import annotations

import argparse

from leakscope import errors, text


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", metavar="RUN", nargs="+", help="folders of the recordings, rank 0's first"
    )
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="a new folder")


def run(options: argparse.Namespace) -> int:
    from leakscope.record.merging import merge

    if len(options.recordings) < 2:
        raise errors.bad_option(
            "RUN", options.recordings[0], "two recordings or more", "merge A B -o JOB"
        )
    merged = merge(options.recordings, options.output)
    hosts = text.plural(len(merged.hosts), "machine")
    count = text.plural(len(options.recordings), "recording")
    print(f"{count} of {hosts} merged; next: leakscope report {options.output}")
    return 0
