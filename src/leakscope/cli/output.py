"""Where a report goes: to a stream for people, to a file whose ending names the format."""

from __future__ import annotations

import os
from typing import TextIO

from leakscope import errors, text
from leakscope.model import Exhibit, Picture, Report
from leakscope.render import render
from leakscope.render.style import Style
from leakscope.render.to_terminal import one_line

FORMATS = {
    ".html": "html",
    ".json": "json",
    ".md": "markdown",
    ".sarif": "sarif",
    ".txt": "terminal",
    ".xml": "junit",
}


def format_of(path: str) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise errors.unknown_format(ending or path, tuple(sorted(FORMATS)))
    return FORMATS[ending]


def write_report(
    report: Report,
    path: str,
    format_name: str | None = None,
    *,
    picture: Picture | None = None,
    against: Exhibit | None = None,
    recording: str | None = None,
) -> None:
    """`recording`: what to type for the folder it was made from."""
    style = Style(recording=recording)
    content = render(report, format_name or format_of(path), style, picture, against)
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
    except OSError as error:
        raise errors.cannot_write(path, error.strerror or str(error)) from None


def show(report: Report, directory: str, stream: TextIO, *, quiet: bool) -> None:
    """The report for people, or its one line."""
    style = Style.of(stream, recording=directory)
    if quiet:
        stream.write(f"{one_line(report)}; recording in {text.clean(directory)}\n")
    else:
        stream.write(render(report, "terminal", style))
    stream.flush()
