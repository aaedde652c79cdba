"""A suspect becomes a finding: a sentence, a trace, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from leakscope import text
from leakscope.attribute.growth import Attribution
from leakscope.attribute.places import relative
from leakscope.attribute.suspect import Suspect
from leakscope.explain.catalogue import rule_for
from leakscope.explain.confirm import Sources
from leakscope.explain.known import WAITS, Entry, known_for, load_known
from leakscope.explain.rule import Case, Rule
from leakscope.model import Finding, Fix, Gap, Holding, Link, Machine, TraceLine

_WORTH_FIRST = 0.25
"""A leak of the user's own is told first if it is a quarter of what a library keeps: that one they
can fix for good. Below that, the library's is what fills the memory."""
_BOUNDED = 0.5
"""No more than this is said of what may stop by itself."""


class Scene(NamedTuple):
    """What the findings of a run have in common."""

    names: Mapping[str, str]
    """Of the processes, as the report has them."""
    kinds: Mapping[str, str]
    steps_from: str
    directory: str
    sources: Mapping[str, str]
    """Texts of the program's files, by path, as they were recorded."""
    machine: Machine | None = None
    by_clock: frozenset[str] = frozenset()
    """Processes whose holders were counted by the clock, where the run has other steps."""


def findings_of(attribution: Attribution, scene: Scene, gaps: list[Gap]) -> tuple[Finding, ...]:
    """All findings of a run, the same leak in several processes once, the largest first.

    `gaps` gets what rules of other packages failed at."""
    total = attribution.total()
    merged: dict[str, Finding] = {}
    sources = Sources(scene.sources, gaps)
    for account in attribution.accounts:
        rate = account.verdict.bytes_per_step.value
        process = account.process
        for found in attribution.explained[account.key].suspects:
            is_by_clock = process in scene.by_clock
            suspect = _at_steps_of_run(found, found.share * rate) if is_by_clock else found
            case = Case(
                suspect,
                scene.kinds.get(process, "main"),
                scene.steps_from,
                scene.sources,
            )
            rule = rule_for(case, gaps)
            finding = finding_for(
                case,
                rule,
                bytes_per_step=suspect.share * rate,
                share=suspect.share * rate / total if total > 0 else 0.0,
                process=scene.names.get(process, process),
                directory=scene.directory,
            )
            if sources.confirm(suspect, rule.code):
                finding = replace(finding, certainty=confirmed(finding.certainty))
            if scene.machine is not None:
                entry = known_for(suspect, scene.machine, scene.sources)
                finding = with_known(finding, *entry) if entry else finding
            earlier = merged.get(finding.fingerprint)
            merged[finding.fingerprint] = _merge(earlier, finding) if earlier else finding
    return ranked(merged.values())


def _at_steps_of_run(suspect: Suspect, bytes_per_step: float) -> Suspect:
    """Of an actor beside the training one would read "9 more per step, 160 KiB each" as nine times
    the 160 KiB per step that it keeps: the nine were counted per tick."""
    each = suspect.holding.bytes_each
    return suspect._replace(count_per_step=bytes_per_step / each) if each > 0 else suspect


def with_known(finding: Finding, entry: Entry, is_library: bool) -> Finding:
    """The same with what is known about it. The number of the rule stays."""
    return replace(
        finding,
        known=entry.id,
        blame="library" if is_library else finding.blame,
        says=f"{finding.says}; this is known: {entry.title}",
        fix=Fix(f"{entry.fix} ({entry.url})"),
    )


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The largest first; but what a library is known to keep for a while comes after a leak of the
    user's own, unless that is small beside it."""
    kinds = {entry.id: entry.kind for entry in load_known()}
    found = sorted(findings, key=lambda finding: -finding.share)
    own = max((one.share for one in found if one.blame == "your-code"), default=0.0)

    def waits(finding: Finding) -> bool:
        is_minor = kinds.get(finding.known, "") in WAITS and finding.blame == "library"
        return is_minor and own >= _WORTH_FIRST * finding.share

    return tuple(sorted(found, key=waits))


def unexplained_of(attribution: Attribution, names: Mapping[str, str]) -> dict[str, float]:
    """Growth per step that no finding accounts for, by `metric process`."""
    left = {}
    for account in attribution.accounts:
        verdict = account.verdict
        share = 1.0 - attribution.explained[account.key].share
        key = f"{verdict.series.metric} {names.get(account.process, account.process)}"
        key += f" {account.device}" if account.device else ""
        left[key] = share * verdict.bytes_per_step.value
    return left


def _merge(known: Finding, other: Finding) -> Finding:
    return replace(
        known,
        bytes_per_step=known.bytes_per_step + other.bytes_per_step,
        share=known.share + other.share,
        certainty=max(known.certainty, other.certainty),
        processes=tuple(dict.fromkeys((*known.processes, *other.processes))),
    )


def finding_for(
    case: Case, rule: Rule, *, bytes_per_step: float, share: float, process: str, directory: str
) -> Finding:
    """What is said about one suspect; `share` is of the growth of the whole run."""
    suspect = case.suspect
    has_line = suspect.keeper is not None or suspect.site is not None
    return Finding(
        rule=rule.code,
        name=rule.name,
        blame=rule.blame if has_line else "library",
        certainty=certainty_of(suspect),
        says=_says(suspect),
        bytes_per_step=bytes_per_step,
        share=share,
        count_per_step=suspect.count_per_step,
        site=relative(suspect.site, directory) if suspect.site else None,
        keeper=relative(suspect.keeper, directory) if suspect.keeper else None,
        holder=tuple(f"{link.via} {link.type}".strip() for link in suspect.holding.path),
        fix=Fix(rule.fix),
        fingerprint=suspect.fingerprint,
        processes=(process,),
        trace=_trace(suspect),
    )


def certainty_of(suspect: Suspect) -> float:
    """Between 0 and 1: how much of the growth it is, how often it was seen to grow, and whether
    its name and its line were found."""
    certainty = 0.5 + 0.3 * min(suspect.share, 1.0)
    certainty += 0.08 if suspect.snapshots >= 2 else 0.0
    certainty += 0.05 if suspect.keeper is not None else 0.0
    certainty += 0.05 if suspect.site is not None else 0.0
    if suspect.is_bounded:
        certainty = min(certainty, _BOUNDED)
    return round(certainty, 2)


def confirmed(certainty: float) -> float:
    """Half of the doubt is gone where the source alone raises the same suspicion. What seems to be
    bounded stays in doubt: the source has the bound in it too."""
    return certainty if certainty <= _BOUNDED else round(certainty + (1.0 - certainty) / 2, 2)


def _says(suspect: Suspect) -> str:
    holding = suspect.holding
    what = _what_grows(holding, suspect.named)
    rate = f"{suspect.count_per_step:,.3g}"
    each = text.size(holding.bytes_each)
    match holding.kind:
        case "graph":
            return f"the autograd graph behind {what} gets {rate} more nodes with each step"
        case "cycle":
            return (
                f"objects in cycles through {what} wait for the garbage collector: {rate} more per "
                f"step, {each} each"
            )
        case "gradient cycle":
            return (
                f"{rate} more parameters per step are kept alive by their own gradients, whose "
                f"graph leads back to them, {each} each"
            )
        case "shared-pages":
            return (
                f"{what} holds {holding.counts[-1][1]:,} Python objects that the workers read: "
                "each read copies the page it lies on"
            )
        case "array":
            size = text.size(holding.counts[-1][1])
            rate = text.size(suspect.count_per_step)
            return f"{what} becomes {rate} larger with each step, and is {size} now"
        case "processes":
            return (
                f"{rate} more of {holding.item} per step stay alive, {holding.counts[-1][1]:,} by "
                f"now, with {each} of private memory each"
            )
        case "device":
            return (
                f"device memory made here stays in use, and no tensor of Python's holds it: {rate} "
                f"× {each} per step"
            )
        case "chain" if holding.path[0].kind == "native":
            return (
                f"native code keeps {rate} more {holding.item} per step, {each} each: they were "
                "registered there, and are never taken back"
            )
        case "chain" if _is_of_one_window(holding):
            return f"a chain of {holding.item} behind {what} becomes longer with the steps"
        case "frozen":
            return (
                f"objects made here are dropped, and gc.freeze has put them out of the collector's "
                f"reach: {rate} × {each} per step"
            )
        case "native":
            return f"native memory made here is never freed: {rate} × {each} per step"
    keeps = f"{what} keeps {rate} more {holding.item} per step, {each} each"
    if suspect.is_bounded:
        keeps += f" (but {suspect.is_bounded})"
    return keeps


def _is_of_one_window(holding: Holding) -> bool:
    """Only what was born within a few steps was counted: how many of those last is not known, nor
    what each keeps alone."""
    return holding.kind == "chain" and holding.counts[0][1] == 0


def _what_grows(holding: Holding, named: Link | None) -> str:
    grows = holding.path[holding.grows_at]
    if named is None:
        return f"a {grows.type}"
    has_owner = named.scope and named.kind in ("attribute", "class", "cache")
    owner = f"{named.scope}." if has_owner else ""
    kind = grows.type if named is grows else f"a {grows.type} in"
    return f"{kind} `{owner}{named.name}`"


def _trace(suspect: Suspect) -> tuple[TraceLine, ...]:
    holding = suspect.holding
    lines = []
    for place, link in enumerate(holding.path):
        note = ""
        if place == holding.grows_at and holding.kind == "array":
            note = f"+{text.size(suspect.count_per_step)} per step"
        elif place == holding.grows_at and not _is_of_one_window(holding):
            last = holding.counts[-1][1]
            note = f"{last:,} now, {suspect.count_per_step:+,.3g} per step"
        elif link.file and link.line and link.kind == "local":
            note = f"running, at line {link.line}"
        lines.append(TraceLine(link.via, link.type, note, is_suspect=place == holding.grows_at))
    return tuple(lines)
