"""Recording → Prometheus' text format, for the textfile collector of node_exporter.

No file or line becomes a label: every leak would make a series of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from leakscope.model import Outcome, Report
from leakscope.record.reader import Recording

Labels = dict[str, str]


def export(recording: Recording, report: Report) -> str:
    """What is known at the end of the recording."""
    names = {one.process: one.name for one in report.processes}
    run = {"run": report.run}
    memory: list[tuple[Labels, float]] = []
    for one in report.processes:
        for category, size in (
            ("resident", one.last_rss_bytes),
            ("private", one.last_uss_bytes),
            ("shared", one.last_shared_bytes),
            ("peak", one.peak_rss_bytes),
        ):
            if size is not None:
                memory.append(({**run, "process": one.name, "category": category}, size))
    slopes: list[tuple[Labels, float]] = []
    suspected: list[tuple[Labels, float]] = []
    for verdict in report.verdicts:
        if verdict.unit == "bytes":
            process = names.get(verdict.series.process, verdict.series.process)
            labels = {**run, "process": process, "category": verdict.series.metric}
            if verdict.series.device:
                labels["device"] = verdict.series.device
            slopes.append((labels, verdict.bytes_per_step.value))
            suspected.append((labels, float(verdict.outcome in {Outcome.LEAK, Outcome.GROWING})))
    left = report.forecast.seconds_left if report.forecast is not None else None
    families = (
        ("memory_bytes", "Memory of a process when the recording ended.", memory),
        ("memory_slope_bytes_per_step", "Growth of a series with each step.", slopes),
        ("leak_suspected", "1 if a series grows with the steps.", suspected),
        (
            "verdict",
            "1 for the verdict on the run.",
            [({**run, "verdict": one.value}, float(one is report.verdict)) for one in Outcome],
        ),
        ("steps", "Steps that were made.", [(run, float(report.steps))]),
        (
            "time_to_oom_seconds",
            "Time until the limit is reached if growth goes on as judged.",
            [(run, left.value)] if left is not None else [],
        ),
        ("build_info", "Version that made the recording.", [({"version": report.leakscope}, 1.0)]),
    )
    return "".join(_family(*family) for family in families)


def _family(name: str, says: str, samples: Iterable[tuple[Labels, float]]) -> str:
    """A metric with its samples; none at all where there is nothing to tell."""
    lines = [f"leakscope_{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples]
    if not lines:
        return ""
    head = f"# HELP leakscope_{name} {says}\n# TYPE leakscope_{name} gauge\n"
    return head + "".join(lines)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    value = value.encode("utf-8", "backslashreplace").decode()
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value)) if value != int(value) else str(int(value))
