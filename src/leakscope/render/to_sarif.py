"""Report → SARIF 2.1.0: each finding at the statement that keeps the memory."""

from __future__ import annotations

import math
from typing import Any

from leakscope import sarif, text
from leakscope.model import Finding, Outcome, Report
from leakscope.render import sentences
from leakscope.render.style import Style


def render(report: Report, style: Style) -> str:
    """A proven leak is an error, growth a warning; what was not seen is a notification."""
    level = "error" if report.verdict is Outcome.LEAK else "warning"
    found = sentences.findings(report)
    rules = {one.rule: _rule(one) for one in found}
    notes = [sarif.notification(f"{what}: {why}") for what, why in sentences.blind_spots(report)]
    results = [_result(report, one, level) for one in found]
    return sarif.document(report.leakscope, list(rules.values()), results, notes)


def _rule(finding: Finding) -> sarif.Part:
    name = text.clean(finding.name)
    advice = text.clean(finding.fix.text) if finding.fix is not None else ""
    return sarif.rule(finding.rule, name, name.replace("-", " ") or finding.rule, advice or name)


def _result(report: Report, finding: Finding, level: str) -> sarif.Part:
    more: dict[str, Any] = {
        "properties": {
            name: value
            for name, value in (
                ("bytesPerStep", finding.bytes_per_step),
                ("share", finding.share),
                ("certainty", finding.certainty),
            )
            if math.isfinite(value)
        }
    }
    if finding.fingerprint:
        more["partialFingerprints"] = {"leakscope/v1": text.clean(finding.fingerprint)}
    places = [sarif.place(site.file, site.line) for site in (finding.keeper,) if site is not None]
    if finding.site is not None:
        made = sarif.place(finding.site.file, finding.site.line, says="made here")
        more["relatedLocations"] = [{"id": 1, **made}]
        places = places or [sarif.place(finding.site.file, finding.site.line)]
    return sarif.result(finding.rule, level, sentences.annotation(report, finding), places, **more)
