"""Show a run while it goes on, or one that is over, in the terminal.

leakscope top                        the newest recording under .leakscope here
leakscope top .leakscope/train-20261115-101500-4711
leakscope top 4711                   the run that watches this process
"""

from __future__ import annotations

import argparse
import os
import sys

from leakscope.cli.recordings import find_recording
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", metavar="RUN|PID", nargs="?", help="folder of a recording, or a process"
    )
    # What `leakscope run --live` starts: it ends with the program and leaves Ctrl-C to it.
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    directory = find_recording(options.recording)
    os.nice(10)  # whoever is watched comes first
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # numpy's threads would compete with the program's
    from leakscope.follow.follower import Follower

    follower = Follower(directory)
    if not _can_draw():
        from leakscope.follow.panels import plain

        sys.stdout.write(plain(follower.look(), Style.of(sys.stdout).columns))
        return 0
    from leakscope.follow.screen import View

    # Without the mouse, what is on the screen can be selected and copied as ever.
    View(follower, is_beside=options.beside).run(mouse=False)
    return 0


def _can_draw() -> bool:
    """True if there is a terminal for keys and one, with a cursor, for the screen."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"
