"""`leakscope lint`: files of any kind, its formats and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakscope.cli import main
from leakscope.lint import reading
from leakscope.lint.file import File
from leakscope.lint.hit import Check, Spot
from leakscope.lint.running import lint

_LEAK = "class A:\n    @functools.cache\n    def f(self, x): return x\n"


def test_hits_end_with_one_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(_LEAK)
    assert main(["lint", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(f"{tmp_path / 'a.py'}:2:6: LS502 lru-cache-keeps-arguments (likely): ")
    assert shown.endswith(
        "1 suspicion in 1 file; `leakscope run` shows whether memory really grows there\n"
    )


def test_nothing_found_ends_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    assert main(["lint", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no suspicion in 1 file\n"


def test_a_folder_without_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("x = 1\n")
    assert main(["lint", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no Python file was read\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"def f(:\n", "line 1: "),
        (b"\xff\xfe\x00junk", "no text in the encoding"),
        (b"x = 'a\x00b'\n", "null bytes"),
        (b"# coding: nope\nx = 1\n", "no text in the encoding"),
        (b"x = '\xe9'\n", "no text in the encoding"),
        (b"(" * 5000, "line 1: "),
    ],
)
def test_what_is_no_python_is_told_and_the_rest_is_read(
    content: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_bytes(content)
    (tmp_path / "b.py").write_text(_LEAK)
    assert main(["lint", str(tmp_path)]) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if "not read" in line]
    assert len(told) == 1
    assert why in told[0]


def test_a_check_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: File) -> Iterator[Spot]:
        raise KeyError("line")

    broken = Check("LS999", "broken", "it fails", "nothing", fail)
    checks, _ = reading.load_checks()
    monkeypatch.setattr(reading, "load_checks", lambda: ((*checks, broken), ()))
    (tmp_path / "a.py").write_text(_LEAK)
    outcome = lint([str(tmp_path)])
    assert [hit.rule for hit in outcome.hits] == ["LS502"]
    assert "LS999: it failed: KeyError" in outcome.unread[0].why


def test_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\nname = '\xe9'\n" + _LEAK.encode())
    assert main(["lint", str(tmp_path)]) == 1


def test_hidden_folders_and_environments_are_passed_over(tmp_path: Path) -> None:
    for folder in (".git", "venv", "__pycache__"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(_LEAK)
    assert main(["lint", str(tmp_path)]) == 0


def test_rules_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(_LEAK)
    assert main(["lint", str(tmp_path), "--select", "LS101"]) == 0
    assert main(["lint", str(tmp_path), "--select", "ls101,LS502"]) == 1
    assert main(["lint", str(tmp_path), "--ignore", "LS502"]) == 0


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["no-such-folder"], "no-such-path"),
        ([".", "--format", "pdf"], "unknown-format"),
        ([".", "--select", "LS999"], "bad-option"),
    ],
)
def test_mistakes_end_with_two(
    words: list[str], slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", *words]) == 2
    assert f"docs/messages.md#{slug}" in capsys.readouterr().err


def test_json_has_every_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(_LEAK)
    (tmp_path / "b.py").write_text("def (")
    main(["lint", str(tmp_path), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    (hit,) = document["hits"]
    assert (hit["rule"], hit["line"], hit["column"], hit["certainty"]) == ("LS502", 2, 6, "likely")
    assert hit["says"]
    assert hit["suggestion"]
    assert document["files"] == 1
    assert document["unread"][0]["file"].endswith("b.py")


def test_sarif_has_what_its_schema_requires(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(_LEAK)
    (tmp_path / "b.py").write_text("def (")
    target = tmp_path / "out.sarif"
    assert main(["lint", str(tmp_path), "--format", "sarif", "-o", str(target)]) == 1
    document = json.loads(target.read_text(encoding="utf-8"))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "leakscope"
    assert all(rule["id"] and rule["shortDescription"]["text"] for rule in driver["rules"])
    (result,) = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "LS502"
    assert result["message"]["text"]
    assert result["level"] == "warning"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("a.py")
    assert place["region"] == {"startLine": 2, "startColumn": 6}
    assert run["invocations"][0]["executionSuccessful"] is True
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 1
