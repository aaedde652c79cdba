"""Two recordings side by side: in what they differ, and what is proposed as the reason."""

from __future__ import annotations

import json
import pathlib

import msgspec

from leakscope.analysis import analyse
from leakscope.comparison import bounded, compare_reports
from leakscope.model import Comparison, Likelihood, Machine, Outcome, Report, Symptom
from leakscope.render.comparison import render_comparison
from leakscope.summarise.machine_facts import facts_of
from make import KIB, MIB, flat, line, recording, wobble


def _held(folder: pathlib.Path, per_step: float, **machine: object) -> Report:
    """Live memory is flat, and the allocator holds more with every step."""
    made = recording(folder).steps(
        300,
        in_use=wobble(flat(), 200),
        held=wobble(line(per_step, 5 * MIB), 200),
        rss=wobble(line(per_step, 150 * MIB), 4096),
    )
    return _on(analyse(made.done()), **machine)


def _live(folder: pathlib.Path, per_step: float, **machine: object) -> Report:
    made = recording(folder).steps(
        300, in_use=wobble(line(per_step), 200), rss=wobble(line(per_step, 150 * MIB), 4096)
    )
    return _on(analyse(made.done()), **machine)


def _on(report: Report, **machine: object) -> Report:
    return msgspec.structs.replace(
        report, machine=msgspec.structs.replace(report.machine, facts={"a": "b"}, **machine)
    )


def test_a_setting_that_makes_it_hold_comes_first(tmp_path: pathlib.Path) -> None:
    a = _held(tmp_path / "a", 64 * KIB, packages={"torch": "2.13"}, python="3.11.7")
    b = _held(
        tmp_path / "b",
        0,
        packages={"torch": "2.12"},
        python="3.12.1",
        allocator_settings={"MALLOC_ARENA_MAX": "1"},
    )
    comparison = compare_reports(a, b)
    assert comparison.symptoms[0] is Symptom.HELD
    first = comparison.differences[0]
    assert (first.what, first.likelihood) == ("setting MALLOC_ARENA_MAX", Likelihood.LIKELY)
    assert (first.effect, first.a, first.b) == ("glibc-arenas", None, "1")
    assert "not kept by the program" in comparison.says
    assert {one.what for one in comparison.differences} == {
        "setting MALLOC_ARENA_MAX",
        "package torch",
        "python",
    }


def test_no_allocator_explains_memory_in_use(tmp_path: pathlib.Path) -> None:
    a = _live(tmp_path / "a", 0, allocator="glibc 2.36", packages={"torch": "2.13"})
    b = _live(tmp_path / "b", 64 * KIB, allocator="jemalloc", packages={"torch": "2.12"})
    comparison = compare_reports(a, b)
    assert comparison.symptoms[0] is Symptom.LIVE
    by_name = {one.what: one for one in comparison.differences}
    assert comparison.differences[0].what == "package torch"
    assert by_name["package torch"].likelihood is Likelihood.POSSIBLE
    assert "not kept" not in comparison.says


def test_runs_that_do_not_differ_are_not_explained(tmp_path: pathlib.Path) -> None:
    a = _live(tmp_path / "a", 0, allocator="glibc 2.36")
    b = _live(tmp_path / "b", 0, allocator="jemalloc")
    comparison = compare_reports(a, b)
    assert not comparison.symptoms
    assert "do not differ" in comparison.says
    assert {one.likelihood for one in comparison.differences} == {Likelihood.UNKNOWN}


def test_one_cause_is_one_line(tmp_path: pathlib.Path) -> None:
    """Breaks when a preload is told three times: as variable, as allocator and as library."""
    a = _held(tmp_path / "a", 64 * KIB, allocator="glibc 2.36")
    b = _held(
        tmp_path / "b",
        0,
        allocator="jemalloc",
        allocator_settings={"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"},
        libraries={"jemalloc": "/usr/lib/libjemalloc.so.2"},
    )
    (only,) = compare_reports(a, b).differences
    assert only.effect == "other-allocator"
    assert len(only.also) == 2


def test_findings_meet_by_fingerprint(tmp_path: pathlib.Path) -> None:
    reports = []
    for name, per_step in (("a", 1.0), ("b", 2.0)):
        made = recording(tmp_path / name).steps(200, in_use=line(8 * KIB * per_step))
        made.looked(20, 60, line(8 * KIB * per_step)).holds("kept", per_step, 8 * KIB)
        reports.append(analyse(made.done()))
    (pair,) = compare_reports(*reports).findings
    assert pair.a_bytes_per_step is not None
    assert pair.b_bytes_per_step is not None
    assert pair.b_bytes_per_step > 1.5 * pair.a_bytes_per_step


def test_one_thing_has_one_name() -> None:
    machine = Machine("h", "Linux", "3.11", 2)
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=0"}
    facts = facts_of(msgspec.structs.replace(machine, allocator_settings=tunables))
    assert facts["setting MALLOC_ARENA_MAX"] == "2"
    assert facts["setting glibc.malloc.tcache_count"] == "0"
    paths = [f"/{env}/lib/python3.11/site-packages/torch/lib/libgomp.so.1" for env in "ab"]
    one, other = (
        facts_of(msgspec.structs.replace(machine, libraries={"gomp": path})) for path in paths
    )
    assert one == other


def test_a_steady_rate_is_at_most_what_would_have_been_seen(tmp_path: pathlib.Path) -> None:
    report = _live(tmp_path / "a", 0)
    for verdict in report.verdicts:
        if verdict.outcome is Outcome.STEADY:
            rate, most = bounded(verdict), verdict.smallest_visible_bytes_per_step
            assert -most <= rate.low <= rate.value <= rate.high <= most


def test_documents(tmp_path: pathlib.Path) -> None:
    comparison = compare_reports(
        _held(tmp_path / "a", 64 * KIB),
        _held(tmp_path / "b", 0, allocator_settings={"MALLOC_ARENA_MAX": "1|\x1b[2J"}),
    )
    back = msgspec.convert(json.loads(render_comparison(comparison, "json")), Comparison)
    assert back == comparison
    for name in ("terminal", "markdown"):
        document = render_comparison(comparison, name)
        assert "\x1b" not in document
        assert "MALLOC" in document
        assert document.endswith("\n")
    assert max(map(len, render_comparison(comparison, "terminal").splitlines())) <= 80
