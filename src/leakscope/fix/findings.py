"""Findings and suspects in, the findings with their diffs out, and all edits file by file.

libcst is loaded here, and only when a change is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from leakscope.attribute.suspect import Suspect
from leakscope.fix.edits import CannotEditError, Change
from leakscope.fix.propose import merged, propose, unified_diff
from leakscope.model import Finding, Fix, Gap

_REPLACED = "\ufffd"
"""What the recording has for bytes that are not UTF-8."""


class Fixed(NamedTuple):
    """The findings with their diffs, and what the diffs do."""

    findings: tuple[Finding, ...]
    changes: dict[str, Change]
    """By the file's full path, all findings together."""


def with_diffs(
    findings: Sequence[Finding],
    suspects: Sequence[tuple[Suspect, Mapping[str, str]]],
    directory: str,
    gaps: list[Gap],
) -> Fixed:
    """Add a diff to each finding that has a safe change.

    Args:
        findings: what is told about the run.
        suspects: what is behind them, each with the sources of its process as they were recorded.
        directory: working directory of the program.
        gaps: gets what could not be changed although it should.
    """
    proposed: dict[str, tuple[Change, str]] = {}
    by_line: dict[tuple[str, int], tuple[Change, str]] = {}
    for suspect, sources in suspects:
        change = _guarded(suspect, sources, gaps)
        diff = _diff(change, sources, directory, gaps) if change is not None else ""
        if change is None or not diff:
            continue
        proposed.setdefault(suspect.fingerprint, (change, diff))
        if suspect.keeper is not None:
            by_line.setdefault((suspect.keeper.file, suspect.keeper.line), (change, diff))
    for suspect, _ in suspects:
        # Two things that one statement keeps are let go of by one change to it.
        if suspect.keeper is not None:
            same = by_line.get((suspect.keeper.file, suspect.keeper.line))
            if same is not None:
                proposed.setdefault(suspect.fingerprint, same)
    told = tuple(
        replace(finding, fix=Fix(finding.fix.text, proposed[finding.fingerprint][1]))
        if finding.fingerprint in proposed and finding.fix is not None
        else finding
        for finding in findings
    )
    shown = [proposed[one.fingerprint][0] for one in told if one.fingerprint in proposed]
    return Fixed(told, merged(shown))


def _guarded(suspect: Suspect, sources: Mapping[str, str], gaps: list[Gap]) -> Change | None:
    """A source that surprises us costs the diff, not the report."""
    try:
        return propose(suspect, sources)
    except Exception as error:  # noqa: BLE001 - told as a gap, with its name
        where = f"{suspect.keeper.file}:{suspect.keeper.line}" if suspect.keeper else "a finding"
        gaps.append(Gap(f"fix for {where}", f"{type(error).__name__}: {error}"))
        return None


def _diff(change: Change, sources: Mapping[str, str], directory: str, gaps: list[Gap]) -> str:
    from leakscope.fix.rewrite import rewrite

    before = sources[change.file]
    if _REPLACED in before:
        gaps.append(Gap(f"fix for {change.file}", "it is not written in UTF-8"))
        return ""
    try:
        after = rewrite(before, change.edits, change.file)
    except CannotEditError as error:
        gaps.append(Gap(f"fix for {change.file}", str(error)))
        return ""
    return unified_diff(before, after, change.file, directory)
