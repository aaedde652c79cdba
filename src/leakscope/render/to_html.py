"""Report → one HTML file: works offline, in light and dark, by keyboard and on paper."""

from __future__ import annotations

from leakscope.model import Exhibit, Picture, Report
from leakscope.render.html.comparison import compared
from leakscope.render.html.document import page
from leakscope.render.html.drawing import drawing
from leakscope.render.html.sections import sections
from leakscope.render.style import Style

DRAWS = True
"""This format shows a picture beside the report, where there is one."""


def render(
    report: Report,
    style: Style,
    picture: Picture | None = None,
    against: Exhibit | None = None,
) -> str:
    """The page. With `against`, a second run is drawn on the same axes and compared."""
    picture = picture or Picture()
    words = sections(report, picture, style)
    data = {"runs": [drawing(report, picture)]}
    if against is not None:
        data["runs"].append(drawing(against.report, against.picture))
        words |= compared(Exhibit(report, picture), against, style)
    return page("report.html", {"against": None, **words}, data)
