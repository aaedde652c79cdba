"""What the command line makes of its words."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from leakscope.cli.output import format_of
from leakscope.cli.run import command_for, parse_budget, split_program
from leakscope.errors import LeakscopeError


@pytest.mark.parametrize(
    ("line", "own", "program"),
    [
        ("train.py --epochs 3", "", "train.py --epochs 3"),
        ("--quiet train.py --quiet", "--quiet", "train.py --quiet"),
        ("--out x train.py", "--out x", "train.py"),
        ("--out=x train.py", "--out=x", "train.py"),
        (
            "--out x --report a.json --report b.md -- --odd",
            "--out x --report a.json --report b.md",
            "--odd",
        ),
        ("--budget 2% -m pkg.train -m other", "--budget 2%", "-m pkg.train -m other"),
        ("-- -m mod", "", "-m mod"),
        (
            "--steps-from time --fail-on leak torchrun --nproc 2 x.py -- y",
            "--steps-from time --fail-on leak",
            "torchrun --nproc 2 x.py -- y",
        ),
        ("--help", "--help", ""),
        ("--quiet", "--quiet", ""),
        ("", "", ""),
    ],
)
def test_own_options_end_where_the_program_begins(line: str, own: str, program: str) -> None:
    """Breaks when an option of the program is taken for ours, or the other way round."""
    assert split_program(line.split()) == (own.split(), program.split())


def _command(*words: str) -> tuple[str, ...]:
    return command_for(argparse.Namespace(program=list(words)))


def test_words_to_execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a script runs under another Python, or a command is not found on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "script").write_text("print()")
    python = sys.executable
    assert _command("missing.py", "-x") == (python, "missing.py", "-x")
    assert _command("app.pyz") == (python, "app.pyz")
    assert _command("-m", "pkg", "a") == (python, "-m", "pkg", "a")
    assert _command("folder") == (python, "folder")
    assert _command("tool", "x") == (str(tool), "x")
    assert _command(str(tool)) == (str(tool),)
    assert _command("script", "x") == (python, "script", "x")
    for words, slug in ((["nothing"], "command-not-found"), ([], "no-program")):
        with pytest.raises(LeakscopeError) as caught:
            _command(*words)
        assert caught.value.slug == slug


@pytest.mark.parametrize(
    ("value", "share"),
    [("1%", 0.01), ("0.5 %", 0.005), ("0.01", 0.01), (" 20% ", 0.2), ("100%", 1.0), ("1", 1.0)],
)
def test_budget(value: str, share: float) -> None:
    """Breaks when percent and share are mixed up."""
    assert parse_budget(value) == pytest.approx(share)


@pytest.mark.parametrize("value", ["", "%", "0", "-1%", "101%", "nan", "inf", "lots", "1%%", "2"])
def test_budget_that_is_none(value: str) -> None:
    """Breaks when nonsense becomes a budget, or a traceback."""
    with pytest.raises(LeakscopeError) as caught:
        parse_budget(value)
    assert caught.value.slug == "bad-option"


@pytest.mark.parametrize(
    ("path", "name"),
    [("a.json", "json"), ("b/c.MD", "markdown"), ("x.txt", "terminal")],
)
def test_format_by_ending(path: str, name: str) -> None:
    """Breaks when an ending, in whatever case, names another format."""
    assert format_of(path) == name


@pytest.mark.parametrize("path", ["report", "x.pdf", ".json/", ""])
def test_ending_without_a_format(path: str) -> None:
    """Breaks when the wish for a PDF is noticed only after the run."""
    with pytest.raises(LeakscopeError) as caught:
        format_of(path)
    assert caught.value.slug == "unknown-format"
