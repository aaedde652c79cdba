"""What code hosts read is whole, whatever is in a report: escaped as each of them un-escapes it."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import any_report
import make_report
from leakscope import text
from leakscope.model import Outcome, Report, Site
from leakscope.render import Style, render
from leakscope.render.relocate import relocated
from leakscope.render.to_github import command

_patient = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_COMMAND = re.compile(r"::(warning|notice) ([^:\r\n]*)::([^\r\n]*)")


def _unescaped(value: str) -> str:
    """As the runner does it, in its order: see ActionCommand.cs of actions/runner."""
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ",")):
        value = value.replace(code, character)
    return value.replace("%25", "%")


def _read(line: str) -> tuple[str, dict[str, str], str]:
    match = _COMMAND.fullmatch(line)
    assert match, line
    pairs = [pair.split("=", 1) for pair in match[2].split(",")]
    return match[1], {key: _unescaped(value) for key, value in pairs}, _unescaped(match[3])


@given(st.text(), st.text())
def test_a_command_reads_back(message: str, file: str) -> None:
    """Breaks when a comma ends a file name, or a message starts a command of its own."""
    line = command("warning", message, file=file, line="3")
    assert line.endswith("\n")
    name, properties, said = _read(line[:-1])
    assert (name, properties["line"]) == ("warning", "3")
    assert properties["file"] == text.clean(file)
    assert said == text.clean(message)


def test_a_command_is_escaped_as_agreed() -> None:
    line = command("warning", "100 %\n::error::x", file="a,b:c%.py", line="1")
    assert line == "::warning file=a%2Cb%3Ac%25.py,line=1::100 %25 ::error::x\n"


@_patient
@given(any_report.reports)
def test_github_gets_one_command_for_each_finding(report: Report) -> None:
    lines = render(report, "github").split("\n")[:-1]
    is_growth = report.verdict in {Outcome.LEAK, Outcome.GROWING}
    assert len(lines) == max(len(report.findings) if is_growth else 1, 1)
    assert {_read(line)[0] for line in lines} == {"warning" if is_growth else "notice"}


@_patient
@given(any_report.reports)
def test_gitlab_gets_a_list_in_which_every_entry_has_its_line(report: Report) -> None:
    entries = json.loads(render(report, "gitlab"))
    placed = [one for one in report.findings if one.keeper or one.site]
    assert len(entries) == len(placed)
    for entry in entries:
        assert entry["severity"] in {"critical", "major"}
        assert entry["location"]["lines"]["begin"] >= 1
        assert re.fullmatch("[0-9a-f]{64}", entry["fingerprint"])


@_patient
@given(any_report.reports)
def test_junit_is_xml_whose_counts_are_right(report: Report) -> None:
    document = render(report, "junit")
    suites = ElementTree.fromstring(document.encode())
    (suite,) = suites
    cases = list(suite)
    assert int(suite.attrib["tests"]) == len(cases)
    assert int(suite.attrib["failures"]) == len(suite.findall(".//failure"))
    assert int(suite.attrib["skipped"]) == len(suite.findall(".//skipped"))
    assert (report.verdict is Outcome.STEADY) == (not suite.findall("testcase[1]/*"))


@_patient
@given(any_report.reports)
def test_sarif_is_whole(report: Report) -> None:
    (run,) = json.loads(render(report, "sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == len(report.findings)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in {"error", "warning"}
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            physical = place["physicalLocation"]
            assert re.fullmatch(r"[!-~]*", physical["artifactLocation"]["uri"])
            assert physical["region"]["startLine"] >= 1


def test_a_name_with_spaces_becomes_a_uri() -> None:
    report = make_report.leaking()
    moved = replace(report.findings[0], keeper=Site("my code/a%b ü.py", 3))
    document = render(replace(report, findings=(moved,)), "sarif", Style())
    (run,) = json.loads(document)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20code/a%25b%20%C3%BC.py"


@pytest.mark.parametrize(
    ("directory", "file", "told"),
    [
        ("/repo", "train.py", "train.py"),
        ("/repo/jobs", "train.py", "jobs/train.py"),
        ("/repo/jobs", "../lib/x.py", "lib/x.py"),
        ("/repo/jobs", "/repo/lib/x.py", "lib/x.py"),
        ("/repo", "/usr/lib/python3/json.py", None),
        ("/elsewhere", "train.py", None),
    ],
)
def test_paths_start_at_the_checkout(directory: str, file: str, told: str | None) -> None:
    """Breaks when an annotation lands on another file, or on one that is not in the repository."""
    report = make_report.leaking()
    report = replace(report, findings=(replace(report.findings[0], keeper=Site(file, 3)),))
    keeper = relocated(report, directory, "/repo").findings[0].keeper
    assert (keeper.file if keeper else None) == told
