"""Report on a recording made earlier.

leakscope report .leakscope/train-20261115-101500-4711
leakscope report RUN --format json -o report.json
leakscope report RUN -o report.html                        charts, findings, who keeps it
leakscope report RUN --compare OTHER -o report.html        two runs on the same axes
leakscope report RUN --heap                  what is in memory, by holder
leakscope report s3://bucket/job.packed      a packed recording, wherever fsspec reaches
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

import msgspec

from leakscope import errors
from leakscope.cli.output import FORMATS, format_of, write_report
from leakscope.engines import NAMES, engine_of, here
from leakscope.model import Exhibit, Picture
from leakscope.render import draws, formats, render
from leakscope.render.contents import render_contents
from leakscope.render.redact import redacted
from leakscope.render.style import Style


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording, packed or not")
    parser.add_argument("--format", help=", ".join(formats()))
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")
    parser.add_argument(
        "--compare", metavar="RUN", help="draw this recording on the same axes (html only)"
    )
    parser.add_argument(
        "--heap", action="store_true", help="show what is in memory at the last heap snapshot"
    )
    parser.add_argument(
        "--redact-paths", action="store_true", help="leave out folders and the name of the machine"
    )
    parser.add_argument(
        "--engine",
        choices=NAMES,
        default="local",
        help="where processes are read and judged: here, or as tasks of a Ray cluster",
    )


def run(options: argparse.Namespace) -> int:
    if options.heap:
        return _show_heap(options)
    known = os.path.splitext(options.output or "")[1].lower() in FORMATS
    chosen = options.format or (format_of(options.output) if known else "terminal")
    if options.compare and not draws(chosen):
        raise errors.bad_option(
            "--compare", chosen, "the format html", "leakscope report RUN --compare B -o ab.html"
        )
    exhibit = _exhibit(options.recording, chosen, options)
    against = _exhibit(options.compare, chosen, options) if options.compare else None
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


def _show_heap(options: argparse.Namespace) -> int:
    from leakscope.analysis import load
    from leakscope.summarise.contents import contents_now

    found = contents_now(load(options.recording))
    if not found:
        raise errors.no_heap_snapshot(options.recording)
    if options.format == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n")
    else:
        sys.stdout.write(render_contents(found, Style.of(sys.stdout)))
    return 0


def _exhibit(path: str, to: str, options: argparse.Namespace) -> Exhibit:
    # numpy and scipy are loaded for the commands that need them only
    from leakscope.analysis import analyse, analyse_with_picture, load
    from leakscope.export.packed import is_packed, read_packed

    engine = engine_of(options.engine)
    make_band = None
    if is_packed(path):
        from leakscope.export.statistics import band_of_packed

        # On this machine rows are read sooner than they are handed from process to process.
        recording = read_packed(path, here if options.engine == "local" else engine)
        make_band = partial(band_of_packed, path)
    else:
        recording = load(path)
    if draws(to):
        exhibit = analyse_with_picture(recording, engine, make_band)
    else:
        exhibit = Exhibit(analyse(recording, engine, make_band), Picture())
    return redacted(exhibit) if options.redact_paths else exhibit
