"""The commands as the user types them: exit codes, and messages instead of tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import leakscope
from leakscope.cli import main
from leakscope.model import FORMAT_VERSION
from running import run_plain, run_watched


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, recorded from inside."""
    out = tmp_path_factory.mktemp("recorded") / "run"
    with leakscope.watch(out):
        for _ in range(200):
            leakscope.step()
            time.sleep(0.0005)
    return out


@pytest.mark.parametrize("name", ["terminal", "json", "markdown"])
def test_report_goes_to_stdout_or_a_file(
    name: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a format cannot be printed, or a file differs from what is printed."""
    assert main(["report", str(recorded), "--format", name]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "200" in said.out
    if name == "json":
        assert json.loads(said.out)["steps_from"] == "api"
    target = tmp_path / "report.out"
    assert main(["report", str(recorded), "--format", name, "-o", str(target)]) == 0
    assert capsys.readouterr() == ("", "")
    if name != "terminal":
        assert target.read_text() == said.out


def _header(change: dict[str, object]) -> str:
    return json.dumps({"format": FORMAT_VERSION, "id": "x"} | change)


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (None, "not-a-recording"),
        ("{ not json", "corrupt-recording"),
        ("", "corrupt-recording"),
        (_header({}), "corrupt-recording"),
        (_header({"format": 99}), "recording-too-new"),
    ],
    ids=["foreign", "not json", "empty", "half", "newer"],
)
def test_bad_recording_gets_a_message(
    content: str | None, slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a damaged, newer or foreign folder shows a traceback or exits with 0 or 1."""
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    assert main(["report", str(tmp_path)]) == 2
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert said.out == ""
    assert lines[0].startswith("leakscope: ")
    assert [line.split()[0] for line in lines[1:]] == ["why", "do", "see"]
    assert lines[-1].endswith(f"#{slug}")


def test_missing_folder_and_wrong_wishes(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a path or a format that is not there shows a traceback."""
    for words, slug in (
        (["report", str(tmp_path / "no")], "not-a-recording"),
        (["report", str(recorded), "--format", "pdf"], "unknown-format"),
        (["report", str(recorded), "-o", str(tmp_path / "no" / "x.json")], "cannot-write"),
        (["run"], "no-program"),
        (["run", "--budget", "lots", "x.py"], "bad-option"),
        (["run", "--report", "x.pdf", "x.py"], "unknown-format"),
    ):
        assert main(words) == 2, words
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.rstrip().endswith(f"#{slug}"), words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["torn", "binary", "no lines", "unknown"])
def test_damaged_lines_are_a_blind_spot(
    damage: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when damage inside a recording stops the report, or goes unsaid in it."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in recorded.iterdir():
        content = path.read_bytes()
        if path.suffix == ".jsonl":
            content = {
                "torn": content[:-5],
                "binary": content + bytes(range(255)) * 3 + b"\n",
                "no lines": b"",
                "unknown": content + b'{"type":"hologram"}\n',
            }[damage]
        (copy / path.name).write_bytes(content)
    assert main(["report", str(copy), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    spots = " ".join(spot["what"] + ": " + spot["why"] for spot in report["blind_spots"])
    if damage in ("torn", "binary"):
        assert "torn" in spots
    elif damage == "unknown":
        assert "1 record: of a kind this version of leakscope does not know" in spots
    else:
        assert report["verdict"] == "unknown"


def test_doctor_says_what_can_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the doctor falls ill, or says yes or no without a reason."""
    assert main(["doctor"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert len(lines) >= 8
    for line in lines:
        assert line.split()[0] in ("yes", "no"), line
        assert len(line.split()) >= 3, line
    assert any("children of a process" in line for line in lines)


def test_module_and_script_are_the_same_command(tmp_path: Path) -> None:
    """Breaks when `python -m leakscope` is not the command, or says it has another name."""
    ran = run_plain(["-m", "leakscope", "--version"], tmp_path)
    assert ran.seen == (0, f"leakscope {leakscope.__version__}\n", "")
    assert run_plain(["-m", "leakscope"], tmp_path).status == 2
    assert b"usage: leakscope" in run_plain(["-m", "leakscope"], tmp_path).stderr


_GROWS = """
import leakscope, time
kept = []
for _ in range(400):
    kept.append(bytearray({size}))
    leakscope.step()
    time.sleep(0.001)
{end}
"""


@pytest.mark.parametrize(
    ("fail_on", "size", "end", "status"),
    [
        (None, 100_000, "", 0),
        ("growing", 100_000, "", 1),
        ("leak", 100_000, "", 1),
        ("growing", 0, "", 0),
        ("growing", 100_000, "raise SystemExit(9)", 9),
    ],
)
def test_exit_code_of_fail_on(
    fail_on: str | None, size: int, end: str, status: int, tmp_path: Path
) -> None:
    """Breaks when --fail-on changes the program's own failure, or no longer fails on growth."""
    script = tmp_path / "grow.py"
    script.write_text(_GROWS.format(size=size, end=end))
    ran = run_watched([script], tmp_path, own=["--fail-on", fail_on] if fail_on else [])
    assert ran.status == status, ran.said


def test_too_little_evidence_is_3_with_fail_on(tmp_path: Path) -> None:
    """Breaks when a run of two steps passes a check it could not have failed."""
    script = tmp_path / "short.py"
    script.write_text("import leakscope\nleakscope.step()\nleakscope.step()\n")
    assert run_watched([script], tmp_path, own=["--fail-on", "leak"]).status == 3


@pytest.mark.parametrize("command", ["run", "top", "env", "lint", "doctor"])
def test_a_command_imports_what_it_needs_and_no_more(command: str) -> None:
    """Breaks when the program waits for scipy before it starts."""
    code = (
        "import sys\nfrom leakscope.cli import main\n"
        f"try: main([{command!r}, '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'textual', 'libcst', 'jinja2'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
