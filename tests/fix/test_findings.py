"""Findings get their diffs; what stands in the way is told, and never costs the report."""

from __future__ import annotations

import pytest
from suspects import FILE, Case, suspect_of, text_of

from leakscope.attribute.suspect import Suspect
from leakscope.fix.findings import with_diffs
from leakscope.model import Finding, Fix, Gap, Site

LOSSES = Case("a list", "local losses in train", """
    def train(model, batches):
        losses = []
        for x in batches:
            losses.append(model(x).mean())  # <-
        print(losses)
""")  # fmt: skip


def finding(fingerprint: str = "01234567") -> Finding:
    return Finding(
        "LS101", "kept-with-graph", "your-code", 0.9, "keeps", 1.0, 0.9, fix=Fix("detach it"),
        fingerprint=fingerprint,
    )  # fmt: skip


def test_a_diff_reads_like_diff(gaps: list[Gap]) -> None:
    """Breaks when `patch -p1` could not apply what is shown."""
    text = text_of(LOSSES).rstrip("\n")
    fixed = with_diffs([finding()], [(suspect_of(LOSSES), {FILE: text})], "/home/me", gaps)
    (told,) = fixed.findings
    assert told.fix == Fix(
        "detach it",
        "--- a/train.py\n"
        "+++ b/train.py\n"
        "@@ -3,3 +3,3 @@\n"
        "     for x in batches:\n"
        "-        losses.append(model(x).mean())\n"
        "+        losses.append(model(x).mean().detach())\n"
        "     print(losses)\n"
        "\\ No newline at end of file\n",
    )
    assert list(fixed.changes) == [FILE]
    assert gaps == []


def test_two_findings_of_one_statement_share_its_diff(gaps: list[Gap]) -> None:
    """Breaks when the second finding of a statement says that nothing can be done."""
    one = suspect_of(LOSSES)
    two = one._replace(fingerprint="89abcdef", named=None)
    sources = {FILE: text_of(LOSSES)}
    fixed = with_diffs(
        [finding(), finding("89abcdef")], [(two, sources), (one, sources)], "/home/me", gaps
    )
    first, second = (told.fix.diff if told.fix else None for told in fixed.findings)
    assert first is not None
    assert first == second


@pytest.mark.parametrize(
    ("text", "whys"),
    [
        ("def train(:\n", []),
        ("", []),
        ("# ol\ufffd\n" + text_of(LOSSES), ["it is not written in UTF-8"]),
    ],
)
def test_odd_sources_leave_the_advice_alone(text: str, whys: list[str], gaps: list[Gap]) -> None:
    """Breaks when a file in another encoding, or no Python at all, is changed or costs a report."""
    line = next((n for n, one in enumerate(text.splitlines(), 1) if "append" in one), 1)
    suspect = suspect_of(LOSSES)._replace(keeper=Site(FILE, line))
    fixed = with_diffs([finding()], [(suspect, {FILE: text})], "/home/me", gaps)
    assert fixed.findings == (finding(),)
    assert [gap.why for gap in gaps] == whys


def test_a_failure_of_ours_is_a_gap(gaps: list[Gap], monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a bug in the making of diffs takes the report with it."""

    def fail(suspect: Suspect, sources: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("leakscope.fix.findings.propose", fail)
    sources = {FILE: text_of(LOSSES)}
    fixed = with_diffs([finding()], [(suspect_of(LOSSES), sources)], "/home/me", gaps)
    assert fixed.findings == (finding(),)
    assert fixed.changes == {}
    assert [gap.what for gap in gaps] == [f"fix for {FILE}:4"]


@pytest.fixture
def gaps() -> list[Gap]:
    return []
