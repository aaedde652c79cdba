"""Write a recording in the form of another tool.

leakscope export RUN --format perfetto -o trace.json      open in ui.perfetto.dev
leakscope export RUN --format prometheus                  for node_exporter's textfile collector
"""

from __future__ import annotations

import argparse
import sys

from leakscope import errors
from leakscope.cli.recordings import find_recording
from leakscope.export import export, formats


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", help="folder of the recording")
    parser.add_argument("--format", required=True, help=" or ".join(formats()))
    parser.add_argument("-o", "--output", metavar="FILE", help="write here instead of stdout")


def run(options: argparse.Namespace) -> int:
    if options.format not in formats():
        raise errors.unknown_format(options.format, formats())
    from leakscope.analysis import analyse, load

    recording = load(find_recording(options.recording))
    document = export(recording, analyse(recording), options.format)
    if not options.output:
        sys.stdout.write(document)
        return 0
    try:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(document)
    except OSError as error:
        raise errors.cannot_write(options.output, error.strerror or str(error)) from None
    return 0
