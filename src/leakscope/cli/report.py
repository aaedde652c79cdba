"""Report on a recording made earlier.

leakscope report .leakscope/train-20261115-101500-4711
leakscope report RUN --format json -o report.json
leakscope report RUN -o report.html                        charts, findings, who keeps it
leakscope report RUN --compare OTHER -o report.html        two runs on the same axes
"""

from __future__ import annotations

import argparse
import os
import sys

from leakscope import errors
from leakscope.cli.output import FORMATS, format_of, write_report
from leakscope.model import Exhibit, Picture
from leakscope.render import draws, formats, render
from leakscope.render.redact import redacted
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording")
    parser.add_argument("--format", help=", ".join(formats()))
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")
    parser.add_argument(
        "--compare", metavar="RUN", help="draw this recording on the same axes (html only)"
    )
    parser.add_argument(
        "--redact-paths", action="store_true", help="leave out folders and the name of the machine"
    )


def run(options: argparse.Namespace) -> int:
    known = os.path.splitext(options.output or "")[1].lower() in FORMATS
    chosen = options.format or (format_of(options.output) if known else "terminal")
    if options.compare and not draws(chosen):
        raise errors.bad_option(
            "--compare", chosen, "the format html", "leakscope report RUN --compare B -o ab.html"
        )
    exhibit = _exhibit(options.recording, chosen, is_redacted=options.redact_paths)
    against = (
        _exhibit(options.compare, chosen, is_redacted=options.redact_paths)
        if options.compare
        else None
    )
    recording = exhibit.report.run if options.redact_paths else options.recording
    if options.output:
        write_report(
            exhibit.report,
            options.output,
            chosen,
            picture=exhibit.picture,
            against=against,
            recording=recording,
        )
        return 0
    style = Style.of(sys.stdout, recording=recording)
    sys.stdout.write(render(exhibit.report, chosen, style, exhibit.picture, against))
    return 0


def _exhibit(recording: str, to: str, *, is_redacted: bool) -> Exhibit:
    # numpy and scipy are loaded for the commands that need them only
    from leakscope.analysis import analyse, analyse_with_picture, load

    loaded = load(recording)
    exhibit = analyse_with_picture(loaded) if draws(to) else Exhibit(analyse(loaded), Picture())
    return redacted(exhibit) if is_redacted else exhibit
