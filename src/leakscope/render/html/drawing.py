"""Picture → the numbers the charts are drawn from, as short as they can be said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from leakscope import text
from leakscope.model import Panel, Picture, Report, Verdict
from leakscope.render import sentences

_PER_STEP = 1000
"""Steps are sent as whole thousandths: a sample may fall between two steps."""


def drawing(report: Report, picture: Picture) -> dict[str, Any]:
    """What one run needs: its panels, what happened when, what was judged, the tree."""
    return {
        "name": text.clean(report.run),
        "byClock": report.steps_from == "time",
        "panels": [_panel(report, panel) for panel in picture.panels],
        "spans": [
            {
                "process": span.process,
                "what": span.what,
                "from": _finite(span.step),
                "to": _finite(span.to_step),
                "says": span.says,
            }
            for span in picture.spans
        ],
        "tree": [
            {
                "name": branch.name,
                "what": branch.what,
                "bytes": round(_finite(branch.bytes)),
                "parent": branch.parent,
                "finding": branch.fingerprint,
            }
            for branch in picture.tree
        ],
    }


def _panel(report: Report, panel: Panel) -> dict[str, Any]:
    return {
        "process": panel.process,
        "steps": _coded(step * _PER_STEP for step in panel.steps),
        "perStep": _PER_STEP,
        "layers": [
            {
                "name": layer.name,
                "role": layer.role,
                "values": _coded(layer.values),
                "seenFrom": layer.seen_from,
                "seenTo": layer.seen_to,
                "finding": layer.fingerprint,
            }
            for layer in panel.layers
        ],
        "curves": [
            {
                "metric": curve.metric,
                "name": text.metric(curve.metric),
                "values": _coded(curve.values),
            }
            for curve in panel.curves
        ],
        "judged": _judged(report, panel),
    }


def _judged(report: Report, panel: Panel) -> dict[str, Any] | None:
    """The verdict that decided for this process: over which steps, in which words, how fast."""
    verdict = deciding(report, panel.process)
    if verdict is None:
        return None
    rate = verdict.bytes_per_step
    says = f"{verdict.outcome.value.upper()}, {verdict.shape.value}"
    if sentences.is_growth(verdict.outcome):
        says += f", {text.rate(rate.value, verdict.unit)}"
    return {
        "metric": verdict.series.metric,
        "outcome": verdict.outcome.value,
        "from": _finite(verdict.from_step),
        "to": _finite(verdict.to_step),
        "rate": _finite(rate.value),
        "says": says,
    }


def deciding(report: Report, process: str) -> Verdict | None:
    """Of the verdicts on a process the gravest, bytes before counts."""
    own = [v for v in report.verdicts if v.series.process == process and v.unit == "bytes"]
    return sentences.by_severity(tuple(own))[0] if own else None


def _coded(values: Iterable[float | None] | Sequence[float]) -> list[int | None]:
    """Whole numbers, each as its difference to the last one that was there."""
    coded: list[int | None] = []
    last = 0
    for value in values:
        if value is None or not math.isfinite(value):
            coded.append(None)
        else:
            whole = round(value)
            coded.append(whole - last)
            last = whole
    return coded


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
