"""Report → GitLab's code quality format, a JSON list that a merge request shows."""

from __future__ import annotations

import hashlib
import json

from leakscope import text
from leakscope.model import Outcome, Report
from leakscope.render import sentences
from leakscope.render.style import Style


def render(report: Report, style: Style) -> str:
    """Each finding that has a line; GitLab has no place for one that has none."""
    severity = "critical" if report.verdict is Outcome.LEAK else "major"
    entries = []
    for finding in sentences.findings(report):
        where = finding.keeper or finding.site
        if where is None:
            continue
        name = finding.fingerprint or f"{finding.rule} {where.file} {where.source}"
        entries.append(
            {
                "description": f"{sentences.finding_title(finding)}: "
                f"{sentences.annotation(report, finding)}",
                "check_name": text.clean(finding.rule),
                "fingerprint": hashlib.sha256(name.encode("utf-8", "replace")).hexdigest(),
                "severity": severity,
                "location": {
                    "path": text.clean(where.file),
                    "lines": {"begin": max(where.line, 1)},
                },
            }
        )
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
