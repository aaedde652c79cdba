"""What a report draws beside its words, made from the same series and the same suspects."""

from __future__ import annotations

import os

from leakscope.attribute.growth import Attribution
from leakscope.attribute.suspects import sources_for
from leakscope.judge.series import RunSeries
from leakscope.model import Excerpt, Picture, Report, Site
from leakscope.record.reader import Recording
from leakscope.summarise.panels import panels_of, sparks_of
from leakscope.summarise.spans import spans_of
from leakscope.summarise.tree import tree_of

_AROUND = 4
"""Lines of source shown before and after the one that matters."""
_WIDEST = 300


def picture_of(
    run: RunSeries, attribution: Attribution, names: dict[str, str], report: Report
) -> Picture:
    panels, left_out = panels_of(run, attribution, names, report)
    keys = {name: process for process, name in names.items()}
    drawn = tuple(keys.get(panel.process, panel.process) for panel in panels)
    spans, spans_left_out = spans_of(run, drawn, names)
    tree, at_step = tree_of(run, drawn, names, attribution.explained)
    return Picture(
        panels=panels,
        left_out=left_out,
        spans=spans,
        spans_left_out=spans_left_out,
        excerpts=_excerpts(run.recording, report),
        tree=tree,
        tree_at_step=at_step,
        sparks=sparks_of(run, names),
    )


def _excerpts(recording: Recording, report: Report) -> tuple[Excerpt, ...]:
    """The lines around each place that a finding names, where the recording has the file."""
    sources = sources_for(recording, "")
    found: dict[tuple[str, int], Excerpt] = {}
    for finding in report.findings:
        for site in (finding.site, finding.keeper):
            if site is None or (site.file, site.line) in found:
                continue
            path = os.path.join(recording.run.directory, site.file)
            text = sources.get(path, sources.get(site.file))
            if text is not None and (excerpt := _excerpt(site, text)) is not None:
                found[site.file, site.line] = excerpt
    return tuple(found.values())


def _excerpt(site: Site, text: str) -> Excerpt | None:
    lines = text.split("\n")
    if not 0 < site.line <= len(lines):
        return None
    first = max(site.line - _AROUND, 1)
    shown = [line.expandtabs(4)[:_WIDEST] for line in lines[first - 1 : site.line + _AROUND]]
    while shown and not shown[-1].strip() and first + len(shown) - 1 > site.line:
        shown.pop()
    return Excerpt(site.file, site.line, first, tuple(shown))
