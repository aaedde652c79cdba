"""At the end of a run in CI: annotations where there is a code host, a line in every log."""

from __future__ import annotations

import io
import json
from pathlib import Path

import make_report
from leakscope.cli.code_host import GITLAB_FILE, tell_host
from running import PROGRAMS, run_watched


def _told(environment: dict[str, str], *, is_told: bool = False) -> str:
    stream = io.StringIO()
    tell_host(make_report.leaking(), "/repo/jobs", environment, stream, is_told=is_told)
    return stream.getvalue()


def test_nothing_is_said_outside_of_ci(tmp_path: Path) -> None:
    assert _told({}) == ""
    assert _told({"CI": "false", "GITHUB_ACTIONS": "false"}) == ""
    assert list(tmp_path.iterdir()) == []


def test_every_ci_gets_one_line() -> None:
    said = _told({"CI": "true"})
    assert said.startswith("leakscope: LEAK ")
    assert said.count("\n") == 1
    assert _told({"CI": "true"}, is_told=True) == ""


def test_github_gets_annotations_and_a_summary(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n")
    environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": "/repo",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    said = _told(environment)
    assert said.startswith("::warning file=jobs/train.py,line=58,title=LS101 ")
    assert summary.read_text().startswith("earlier\n## LEAK: ")


def test_gitlab_gets_a_file_of_our_own_name(tmp_path: Path) -> None:
    environment = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(tmp_path)}
    stream = io.StringIO()
    report = make_report.leaking()
    tell_host(report, str(tmp_path / "jobs"), environment, stream, is_told=True)
    (entry,) = json.loads((tmp_path / GITLAB_FILE).read_text())
    assert entry["location"] == {"path": "jobs/train.py", "lines": {"begin": 58}}
    assert GITLAB_FILE in stream.getvalue()


def test_a_disk_that_is_full_is_only_said(tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    said = _told({"GITLAB_CI": "true", "CI_PROJECT_DIR": str(missing)})
    assert "could not be written: No such file or directory" in said


def test_a_run_in_github_actions_ends_as_the_program_ended(tmp_path: Path) -> None:
    """Breaks when an annotation goes to stdout, or changes the exit status."""
    (tmp_path / "stop").touch()
    env = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path), "CI": "true"}
    ran = run_watched([PROGRAMS / "live_steps.py", str(tmp_path / "stop")], tmp_path, env=env)
    assert (ran.status, ran.stdout, ran.stderr) == (7, b"started False\n", b"finished\n")
    assert "\n::notice title=leakscope::" in ran.said
