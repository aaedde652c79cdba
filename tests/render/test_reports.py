"""What the renderers say and, as important, what they do not say."""

from __future__ import annotations

import importlib.util
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import make_report
from leakscope.errors import LeakscopeError
from leakscope.model import (
    Ending,
    Finding,
    Forecast,
    Gap,
    Outcome,
    Peak,
    Rate,
    Report,
    Site,
    TraceLine,
)
from leakscope.render import Style, formats, render, to_json, to_terminal
from make_report import KIB, MIB, verdict

_DOCS = Path(__file__).parents[2] / "docs"


def terminal(report: Report, width: int = 100, recording: str | None = None) -> str:
    return render(report, "terminal", Style(width=width, recording=recording))


def flat(document: str) -> str:
    """The document as one line, so that a wrapped sentence can be found in it."""
    return " ".join(document.split())


def test_formats_are_the_files_of_the_folder() -> None:
    assert {"json", "markdown", "terminal"} <= set(formats())


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(LeakscopeError, match="no report format `pdf`") as caught:
        render(make_report.steady(), "pdf")
    assert f"the formats are {', '.join(formats())}\n" in str(caught.value)


def test_steady_report_of_one_process_fits_a_screen() -> None:
    assert len(terminal(make_report.steady(), 80).splitlines()) <= 24


@pytest.mark.parametrize("to", ["terminal", "markdown"])
def test_growth_without_a_finding_says_that_no_line_is_named(to: str) -> None:
    says = "No line is named"
    assert says in render(make_report.growing(), to)
    for report in (make_report.leaking(), make_report.steady(), make_report.unknown()):
        assert says not in render(report, to)


@pytest.mark.parametrize("to", ["terminal", "markdown"])
def test_a_finding_is_told_in_full(to: str) -> None:
    document = unescape(flat(render(make_report.leaking(), to, Style(width=120))))
    for part in (
        "1. LS101 loss-kept-with-graph",
        "your code · +3.1 MiB/step · 98 % of the growth · OOM at step ~41,000 (5 h 10 m)",
        "keeps one live autograd graph more each step",
        "├─ .losses list, 412 items, +1.0/step GROWING │ ~~~~~~ ├─ [x]",
        "╰→ 38 saved tensors +3.1 MiB/step",
        "training_step",
        "loss = criterion(model(x), y)",
        "losses.append(loss)",
        "+losses.append(loss.detach())",
        "3.2 KiB/step (<0.1 %)",
    ):
        assert part in document.replace("\\~", "~")


def finding(**changes: Any) -> Finding:
    return msgspec.structs.replace(make_report.FINDING, **changes)


@pytest.mark.parametrize("to", ["terminal", "markdown"])
def test_findings_are_numbered_by_their_share(to: str) -> None:
    shares = {"small": 0.1, "unclear": float("nan"), "large": 0.6}
    some = tuple(finding(rule="", name=name, share=share) for name, share in shares.items())
    document = render(make_report.leaking(findings=some), to)
    places = [document.index(line) for line in ("1. large", "2. small", "3. unclear")]
    assert places == sorted(places)
    assert document.count("OOM at step") == 1
    assert "1. " not in render(make_report.leaking(findings=some[:1], notes=()), to)


def test_doubt_is_told_and_certainty_is_not() -> None:
    assert "sure" not in terminal(make_report.leaking(findings=(finding(certainty=0.9),)))
    for certainty, says in [(0.5, "50 % sure"), (float("nan"), "unknown sure")]:
        report = make_report.leaking(findings=(finding(certainty=certainty),))
        assert says in terminal(report)


def test_without_a_forecast_nothing_is_said_about_the_end() -> None:
    assert "OOM" not in terminal(make_report.leaking(forecast=None))


@pytest.mark.parametrize(
    ("unexplained", "says"),
    [
        ({"heap.in_use_bytes main": 0.2 * MIB}, "not explained: 205 KiB/step (6.1 %)"),
        ({"a main": 3.1 * MIB, "a worker 0": 3.1 * MIB}, "not explained: 6.2 MiB/step (67 %)"),
        ({"a main": 3.1 * MIB, "a worker 0": -1.0, "b": float("nan")}, "3.1 MiB/step (50 %)"),
        ({"a main": 0.0}, None),
        ({}, None),
    ],
)
def test_what_is_not_explained_is_one_line(unexplained: dict[str, float], says: str | None) -> None:
    document = terminal(make_report.leaking(findings=(finding(),), unexplained=unexplained))
    if says is None:
        assert "not explained" not in document
    else:
        assert sum(says in line for line in document.splitlines()) == 1


def test_the_processes_are_named_unless_it_is_the_main_one() -> None:
    document = terminal(make_report.leaking_workers())
    assert "  in          ×2 workers: worker 0, worker 1" in document
    main = finding(processes=(make_report.MAIN,))
    assert "  in   " not in terminal(make_report.leaking_workers(findings=(main,)))
    many = finding(processes=tuple(f"rank {n}" for n in range(64)))
    assert "rank 7 and 56 more" in terminal(make_report.leaking_workers(findings=(many,)))


def test_a_trace_stays_in_its_box_where_it_is_narrow() -> None:
    lines = terminal(make_report.leaking_workers(), 60).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("  ┬"))
    end = next(n for n, line in enumerate(lines) if line.startswith("  ╰"))
    assert all(line[2] in "├│" for line in lines[start + 1 : end])
    (suspect,) = [n for n, line in enumerate(lines) if "├─ .cache" in line]
    assert lines[suspect + 1] == "  │   ~~~~~"
    assert max(map(len, lines[start : end + 2])) <= 60


def test_a_long_reference_is_cut_and_still_underlined() -> None:
    via = "." + "x" * 200
    lines = (TraceLine("module m", ""), TraceLine(via, "list " * 30, "GROWING", is_suspect=True))
    document = terminal(make_report.leaking(findings=(finding(trace=lines),)), 60).splitlines()
    (at,) = [n for n, line in enumerate(document) if line.startswith("  ╰→ .xx")]
    assert len(document[at]) == 60
    assert document[at].endswith("…")
    assert document[at + 1] == " " * 6 + "~" * 54
    assert document[at + 2].startswith(" " * 7 + "list list")


def test_a_path_without_a_trace_is_drawn_too() -> None:
    document = flat(terminal(make_report.leaking(findings=(finding(trace=()),))))
    assert "├─ .losses list, 412 items, +1.0/step │ ~~~~~~ ├─ [x]" in document
    assert "╰→ 38 saved tensors, +3.1 MiB/step made at" in document


@pytest.mark.parametrize("to", ["terminal", "markdown"])
def test_a_finding_may_know_next_to_nothing(to: str) -> None:
    bare = Finding("", "", "", float("nan"), "", float("nan"), float("nan"))
    document = render(make_report.leaking(findings=(bare,)), to)
    assert "a finding" in document
    assert "made at" not in document


def test_markup_in_a_trace_stays_text() -> None:
    nasty = "[red]alert[/red] \x1b[31m\n:boom:"
    lines = (TraceLine(nasty, nasty, nasty, is_suspect=True), TraceLine("", nasty))
    site = Site(nasty, 3, nasty, nasty)
    bad = finding(trace=lines, site=site, keeper=site, says=nasty, name=nasty, processes=(nasty,))
    for to in ("terminal", "markdown"):
        document = render(make_report.leaking_workers(findings=(bad,)), to, Style(width=120))
        assert "\x1b" not in document
        assert "[red]alert[/red] \\x1b[31m :boom:" in flat(document)


def test_a_long_trace_keeps_both_ends_and_what_is_to_blame() -> None:
    lines = tuple(TraceLine(f".link{n}", "dict", is_suspect=n == 14) for n in range(30))
    document = terminal(make_report.leaking(findings=(finding(trace=lines),)))
    assert "┬  .link0" in document
    assert "├─ .link14" in document
    assert "╰→ .link29" in document
    assert "├─ … 9 links more" in document
    assert "├─ … 10 links more" in document
    assert sum(".link" in line for line in document.splitlines()) == 11


def test_a_program_that_finished_has_no_ending() -> None:
    assert "ended" not in terminal(make_report.steady())


@pytest.mark.parametrize(
    ("ending", "says"),
    [
        (Ending(None, 9, ""), "killed by signal 9 (SIGKILL)"),
        (Ending(3, None, ""), "ended with exit code 3"),
        (Ending(None, None, ""), "its end was not seen"),
        (Ending(1, None, "raised ValueError"), "raised ValueError"),
    ],
)
@pytest.mark.parametrize("to", ["terminal", "markdown"])
def test_any_other_ending_is_told(ending: Ending, says: str, to: str) -> None:
    assert says in render(make_report.steady(ending=ending), to)


def test_forecast_without_a_bound_says_not_before() -> None:
    forecast = Forecast(
        limit_bytes=64 * 1024 * MIB,
        limit_from="RAM of this machine",
        now_bytes=MIB,
        bytes_per_step=Rate(1.0, 0.0, 2.0),
        steps_left=Rate(1e6, 5e5, float("inf")),
        seconds_left=Rate(18_600.0, 9_000.0, float("inf")),
        at_step=1_000_412,
        says="",
    )
    assert (
        "reaches the RAM of this machine, 64 GiB, at step ~1,000,000, in 5 h 10 m "
        "(not before 2 h 30 m)" in flat(terminal(make_report.growing(forecast=forecast)))
    )


def test_series_may_name_their_process_by_key_or_by_name() -> None:
    for key in ("4720-889300", "worker 0"):
        growth = verdict(outcome=Outcome.GROWING, process=key)
        line = to_terminal.one_line(make_report.many_processes(verdicts=(growth,)))
        assert "(C heap, in use, worker 0)" in line
    together = verdict("tree.growth_bytes", Outcome.GROWING, process="all")
    line = to_terminal.one_line(make_report.many_processes(verdicts=(together,)))
    assert "(all processes together)" in line


def test_smallest_visible_leak_is_that_of_the_dullest_process() -> None:
    report = make_report.many_processes(
        verdict=Outcome.STEADY,
        verdicts=(
            verdict(visible=1.0 * KIB),
            verdict("process.rss_bytes", visible=400.0 * KIB),
            verdict(visible=7.0 * KIB, process="4720-889300"),
            verdict("process.rss_bytes", visible=500.0 * KIB, process="4720-889300"),
            verdict("python.blocks_count", visible=9e9, unit="blocks"),
            verdict(visible=float("nan"), process="4721-889301"),
            verdict("process.uss_bytes", visible=0.0, process="4720-889300"),
        ),
    )
    says = "the smallest leak this run could have shown: 7 KiB/step (C heap, in use, worker 0)"
    assert says in flat(terminal(report))


def test_growth_comes_first_and_the_rest_is_counted() -> None:
    verdicts = tuple(verdict(f"m.s{n:03}_bytes") for n in range(40))
    report = make_report.growing(
        verdicts=(*verdicts, verdict("m.last_bytes", Outcome.GROWING, visible=1.0))
    )
    lines = terminal(report).splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("  series"))
    assert lines[head + 1].startswith("  m last")
    assert "  and 29 series more: 29 steady" in lines


def test_one_gap_in_many_processes_is_said_once() -> None:
    document = flat(terminal(make_report.many_processes()))
    assert document.count("the allocator is jemalloc") == 1
    assert "the allocator is jemalloc (in 2 processes)" in document


def test_many_blind_spots_are_counted() -> None:
    gaps = tuple(Gap(f"probe {n}", "it failed three times") for n in range(20))
    assert "and 14 more" in terminal(make_report.steady(blind_spots=gaps))


def test_small_parts_of_the_peak_are_added_up() -> None:
    parts = {f"part {n}": (20 - n) * MIB for n in range(12)}
    peak = Peak(sum(parts.values()), 3, parts, "")
    lines = terminal(make_report.steady(peak=peak)).splitlines()
    (rest,) = [line for line in lines if "parts more" in line]
    assert rest.split()[:5] == ["4", "parts", "more", "42", "MiB"]


def test_processes_are_listed_when_there_is_more_than_one() -> None:
    assert "private" not in terminal(make_report.steady())
    document = terminal(make_report.many_processes())
    assert "private" in document
    assert "ffmpeg *" in document


def test_next_commands_name_the_recording() -> None:
    assert "leakscope report 'my runs/1' --format json" in terminal(
        make_report.steady(), recording="my runs/1"
    )
    assert f"leakscope report {make_report.steady().run} --format" in terminal(make_report.steady())


def test_markup_in_foreign_strings_stays_text() -> None:
    nasty = "[red]alert[/red] [/] :boom: \x1b[31m"
    document = terminal(make_report.steady(because=nasty, command=(nasty,), notes=(nasty,)))
    assert document.count("[red]alert[/red] [/] :boom: \\x1b[31m") == 3
    assert "\x1b" not in document


def test_markdown_escapes_foreign_strings() -> None:
    nasty = "a|b `c` <b>@me</b>\n# head #12 [x](y)"
    report = make_report.steady(because=nasty, notes=(nasty,), blind_spots=(Gap(nasty, nasty),))
    document = render(report, "markdown")
    safe = r"a\|b \`c\` &lt;b&gt;&#64;me&lt;/b&gt; &#35; head &#35;12 \[x\](y)"
    assert document.count(safe) == 4
    assert "\n# head" not in document


def test_markdown_code_holds_backticks() -> None:
    document = render(make_report.steady(command=("a`b``c",)), "markdown")
    assert "- **program:** ```'a`b``c'```" in document


@pytest.mark.parametrize("case", sorted(set(make_report.CASES) - {"unknown"}))
def test_json_is_the_model(case: str) -> None:
    report = make_report.CASES[case]()
    document = to_json.render(report, Style())
    assert msgspec.json.decode(document, type=Report) == report


def test_json_has_the_fields_of_the_contract() -> None:
    document = msgspec.json.decode(to_json.render(make_report.leaking(), Style()))
    assert document.keys() >= {
        "schema", "verdict", "because", "steps", "steps_from", "verdicts", "findings",
        "unexplained", "blind_spots", "forecast", "machine", "cost",
    }  # fmt: skip
    assert document["verdicts"][0].keys() >= {
        "series", "outcome", "shape", "because", "bytes_per_step",
        "smallest_visible_bytes_per_step",
    }  # fmt: skip
    assert document["findings"][0].keys() == {
        "rule", "name", "blame", "certainty", "says", "bytes_per_step", "share",
        "count_per_step", "site", "keeper", "holder", "fix", "fingerprint", "processes", "trace",
        "known",
    }  # fmt: skip
    assert document["schema"] == 1
    assert document["verdict"] == "leak"
    assert document["verdicts"][0]["series"] == {
        "metric": "heap.in_use_bytes", "process": make_report.MAIN, "device": None,
    }  # fmt: skip


def test_json_takes_the_numbers_of_numpy() -> None:
    numbers = Rate(np.float64(1.5), np.float64("nan"), np.float64(2.0))
    report = make_report.steady(
        seconds=np.float64(3.5), steps=np.int64(7), verdicts=(verdict(per_step=numbers),)
    )
    document = msgspec.json.decode(to_json.render(report, Style()))
    assert (document["seconds"], document["steps"]) == (3.5, 7)
    assert document["verdicts"][0]["bytes_per_step"] == {"value": 1.5, "low": None, "high": 2.0}


def test_json_survives_file_names_that_are_not_text() -> None:
    report = make_report.steady(command=("python", "caf\udce9.py"), because="two\nlines")
    again = to_json.read(to_json.render(report, Style()))
    assert again.command == ("python", "caf\\udce9.py")
    assert again.because == "two\nlines"


def test_published_schema_is_current() -> None:
    path = _DOCS / "make_schema.py"
    spec = importlib.util.spec_from_file_location("make_schema", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    published = (_DOCS / "report-schema.json").read_text(encoding="utf-8")
    assert published == module.schema(), "run: python docs/make_schema.py"


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (
            make_report.steady(),
            "leakscope: STEADY over 412 steps; smallest leak it could have shown 1.2 KiB/step",
        ),
        (
            make_report.unknown(),
            "leakscope: UNKNOWN over 52 steps: only 12 steps after warm-up; run at least 60",
        ),
        (
            make_report.killed(),
            "leakscope: GROWING +3.1 MiB/step (C heap, in use) over 412 steps; killed by signal 9 "
            "at step 412; memory was at 99 % of the cgroup limit",
        ),
        (
            make_report.leaking(forecast=None),
            "leakscope: LEAK +3.1 MiB/step (C heap, in use) over 412 steps; "
            "LS101 loss-kept-with-graph",
        ),
    ],
)
def test_one_line(report: Report, line: str) -> None:
    assert to_terminal.one_line(report) == line
