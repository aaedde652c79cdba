"""Recordings in the words of other tools: every value arrives, and nothing breaks the format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

import any_report
import make_report
from leakscope.analysis import analyse
from leakscope.cli import main
from leakscope.errors import LeakscopeError
from leakscope.export import export, formats
from leakscope.export.to_prometheus import export as to_prometheus
from leakscope.model import Report
from leakscope.record.reader import Recording
from make import KIB, MIB, Maker, flat, line, recording

_SAMPLE = re.compile(r'leakscope_[a-z_]+\{([a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*\} \S+')


def _made(directory: Path) -> Maker:
    made = recording(directory).steps(200, in_use=line(16 * KIB), rss=line(20 * KIB, 300 * MIB))
    made.resident([0, 50, 200], flat(310 * MIB)).mark("save", 100)
    return made.ended(200)


def test_the_formats_are_the_files_of_the_folder(tmp_path: Path) -> None:
    assert formats() == ("perfetto", "prometheus")
    with pytest.raises(LeakscopeError, match="no report format `xml`"):
        export(_made(tmp_path).done(), make_report.steady(), "xml")


def test_perfetto_has_every_row_and_every_mark(tmp_path: Path) -> None:
    made = _made(tmp_path).done()
    events = json.loads(export(made, analyse(made), "perfetto"))["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    in_use = [one for one in counters if one["name"] == "C heap, in use"]
    assert len(in_use) == 200
    assert in_use[0]["args"] == {"bytes": 100 * MIB + 16 * KIB}
    assert in_use[1]["ts"] - in_use[0]["ts"] == 10_000
    assert len([one for one in counters if one["name"] == "resident (RSS)"]) == 203
    (save,) = (event for event in events if event["name"] == "save")
    assert (save["ph"], save["ts"], save["args"]) == ("i", 1_000_000, {"step": 100})
    assert {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "main"}} in events
    moments = [event["ts"] for event in events if "ts" in event]
    assert moments == sorted(moments)


def test_prometheus_says_what_the_report_says() -> None:
    made = Recording.__new__(Recording)  # only the report is told
    said = to_prometheus(made, make_report.leaking())
    run = 'run="20261115-082113-4711"'
    assert f'leakscope_verdict{{{run},verdict="leak"}} 1\n' in said
    assert f'leakscope_memory_bytes{{{run},process="main",category="resident"}} ' in said
    assert f"leakscope_steps{{{run}}} 412\n" in said
    assert "leakscope_time_to_oom_seconds" in said
    assert "leakscope_time_to_oom_seconds" not in to_prometheus(made, make_report.steady())


def test_a_label_is_escaped_as_agreed() -> None:
    said = to_prometheus(
        Recording.__new__(Recording), replace(make_report.steady(), run='a"b\\c\nd')
    )
    assert 'leakscope_steps{run="a\\"b\\\\c\\nd"} 412\n' in said


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_report.reports)
def test_prometheus_can_read_every_line(report: Report) -> None:
    said = to_prometheus(Recording.__new__(Recording), report)
    assert said.endswith("\n")
    for one in said[:-1].split("\n"):
        assert one.startswith(("# HELP leakscope_", "# TYPE leakscope_")) or _SAMPLE.fullmatch(one)


def test_the_command_writes_a_file_or_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(_made(tmp_path / "run").directory)
    assert main(["export", run, "--format", "prometheus"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# HELP leakscope_memory_bytes ")
    target = tmp_path / "leaks.prom"
    assert main(["export", run, "--format", "prometheus", "-o", str(target)]) == 0
    assert target.read_text() == said
    assert main(["export", run, "--format", "prometheus", "-o", str(tmp_path / "no" / "x")]) == 2
    assert main(["export", run, "--format", "csv"]) == 2
    assert "the formats are perfetto, prometheus" in capsys.readouterr().err
