"""No report breaks a renderer, and nothing foreign reaches the terminal raw."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import any_report
from leakscope.model import Report
from leakscope.render import Style, formats, render, to_json, to_terminal

# Building a whole report from nothing is slow, not wrong; the machine may be busy.
_patient = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_OURS = re.compile(r"\x1b\[[0-9;]*m")


@_patient
@given(any_report.reports, st.integers(40, 200), st.booleans(), st.booleans())
def test_terminal_stays_inside_its_width(
    report: Report, width: int, has_colour: bool, is_ascii: bool
) -> None:
    style = Style(width=width, has_colour=has_colour, is_ascii=is_ascii)
    document = to_terminal.render(report, style)
    plain = _OURS.sub("", document) if has_colour else document
    lines = plain.split("\n")
    assert report.verdict.value.upper() in lines[0]
    assert [line for line in lines if cell_len(line) > width] == []
    assert _unsafe(plain) == []
    if is_ascii:
        assert plain.isascii()


@_patient
@given(any_report.reports)
def test_one_line_is_one_safe_line(report: Report) -> None:
    line = to_terminal.one_line(report)
    assert line.startswith(f"leakscope: {report.verdict.value.upper()} ")
    assert "\n" not in line
    assert _unsafe(line) == []


@_patient
@given(any_report.reports)
def test_json_reads_back(report: Report) -> None:
    document = to_json.render(report, Style())
    json.loads(document, parse_constant=_not_json)
    again = to_json.read(document)
    assert _comparable(again) == _comparable(report)


@_patient
@given(any_report.reports)
def test_markdown_keeps_foreign_strings_out_of_the_layout(report: Report) -> None:
    document = render(report, "markdown")
    assert document.startswith(f"## {report.verdict.value.upper()}: ")
    assert _unsafe(document) == []
    outside = _outside_code(document)
    assert "<script>" not in outside
    for block in outside.split("\n\n"):
        if block.startswith("| "):
            pipes = {len(re.findall(r"(?<!\\)\|", line)) for line in block.split("\n")}
            assert len(pipes) == 1, block


@pytest.mark.parametrize("to", formats())
def test_every_format_ends_with_one_line_break(to: str) -> None:
    import make_report

    document = render(make_report.leaking(), to)
    assert document.endswith("\n")
    assert not document.endswith("\n\n")


def _unsafe(document: str) -> list[str]:
    return re.findall(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", document
    )


def _not_json(constant: str) -> float:
    raise AssertionError(f"{constant} is not JSON")


def _comparable(report: Report) -> Any:
    """The report as JSON can hold it: numbers that are not finite, and lone surrogates, aside."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, str):
            return re.sub("[\ud800-\udfff]", lambda m: f"\\u{ord(m.group()):04x}", value)
        if isinstance(value, dict):
            return {plain(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value

    return plain(msgspec.to_builtins(report))


def _outside_code(document: str) -> str:
    """The document without its code blocks and code spans, read as GitHub reads them."""
    document = re.sub(r"(?ms)^(`{3,})[a-z]*\n.*?^\1$", "", document)
    return re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", document)
