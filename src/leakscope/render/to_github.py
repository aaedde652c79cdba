"""Report → workflow commands: GitHub Actions shows them beside the lines they name."""

from __future__ import annotations

from leakscope import text
from leakscope.model import Report
from leakscope.render import sentences
from leakscope.render.style import Style


def render(report: Report, style: Style) -> str:
    """A warning for each finding, at the statement that keeps the memory; a notice without any."""
    if not sentences.is_growth(report.verdict):
        return command("notice", sentences.one_line(report), title="leakscope")
    if not report.findings:
        return command("warning", sentences.one_line(report), title="leakscope")
    lines = []
    for finding in sentences.findings(report):
        where = finding.keeper or finding.site
        place = {"file": where.file, "line": str(where.line)} if where is not None else {}
        title = sentences.finding_title(finding)
        says = sentences.annotation(report, finding)
        lines.append(command("warning", says, **place, title=title))
    return "".join(lines)


def command(name: str, message: str, **properties: str) -> str:
    """`::warning file=train.py,line=58::…`, escaped as the runner un-escapes it."""
    words = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {words}::{_data(text.clean(message))}\n"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(text.clean(value)).replace(":", "%3A").replace(",", "%2C")
