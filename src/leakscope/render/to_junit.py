"""Report → JUnit XML, which nearly every CI shows as tests: memory does not grow, or it fails."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

from leakscope import text
from leakscope.model import Finding, Outcome, Report
from leakscope.render import sentences
from leakscope.render.style import Style

# Two characters that XML has no place for and `text.clean` leaves alone.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def render(report: Report, style: Style) -> str:
    """One test for the run, and a failing one for each finding; UNKNOWN is a skipped test."""
    grows = sentences.is_growth(report.verdict)
    found = sentences.findings(report) if grows else []
    is_skipped = report.verdict is Outcome.UNKNOWN
    seconds = f"{report.seconds:.3f}" if math.isfinite(report.seconds) else "0"
    counts = {
        "tests": str(1 + len(found)),
        "failures": str(grows + len(found)),
        "errors": "0",
        "skipped": str(int(is_skipped)),
        "time": seconds,
    }
    suites = ElementTree.Element("testsuites", {"name": "leakscope", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "leakscope", **counts})
    case = _case(suite, "memory does not grow", seconds)
    if grows:
        _said(case, "failure", sentences.one_line(report), text.sentence(report.because), report)
    elif is_skipped:
        skipped = ElementTree.SubElement(case, "skipped")
        skipped.set("message", _xml(text.sentence(report.because)))
    for finding in found:
        _finding(suite, report, finding)
    ElementTree.indent(suites)
    document = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


def _finding(suite: ElementTree.Element, report: Report, finding: Finding) -> None:
    case = _case(suite, sentences.finding_title(finding), "0")
    where = finding.keeper or finding.site
    lines = [sentences.annotation(report, finding)]
    if where is not None:
        case.set("file", _xml(text.clean(where.file)))
        case.set("line", str(where.line))
        lines.insert(0, sentences.place(where))
    _said(case, "failure", text.clean(finding.says), "\n".join(lines), report)


def _case(suite: ElementTree.Element, name: str, seconds: str) -> ElementTree.Element:
    words = {"classname": "leakscope", "name": _xml(name), "time": seconds}
    return ElementTree.SubElement(suite, "testcase", words)


def _said(case: ElementTree.Element, kind: str, message: str, details: str, report: Report) -> None:
    words = {"message": _xml(message), "type": report.verdict.value}
    ElementTree.SubElement(case, kind, words).text = _xml(details)


def _xml(words: str) -> str:
    return _FORBIDDEN.sub("\ufffd", words)
