"""Every message says what, why and what to do, and has its paragraph in the docs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import leakscope
from leakscope import errors
from leakscope.errors import LeakscopeError

_MESSAGES = Path(__file__).parents[1] / "docs" / "messages.md"
_SOURCE = Path(leakscope.__file__).parent

_ALL = [
    errors.no_program(),
    errors.command_not_found("pyhton"),
    errors.no_such_path("trian.py"),
    errors.no_such_process("4711"),
    errors.no_such_rule("LS999"),
    errors.no_lines("len"),
    errors.lines_not_watched("train"),
    errors.no_heap_snapshot("run"),
    errors.not_a_recording("somewhere"),
    errors.no_recording(".leakscope"),
    errors.not_watched(4711, "there is no such process"),
    errors.corrupt_recording(".leakscope/x", "run.json ends in the middle of a word"),
    errors.recording_too_new(".leakscope/x", 3, 1),
    errors.cannot_write("/root/out", "permission denied"),
    errors.cannot_reach("s3://bucket/job", "Install s3fs to access S3"),
    errors.missing_extra("pyarrow", "scale", "packed recordings"),
    errors.unknown_format("pdf", ("json", "terminal")),
    errors.no_safe_fix(".leakscope/x"),
    errors.nothing_watched(),
    errors.source_changed("train.py", "its text is not the one that was recorded"),
    errors.did_not_grow(".leakscope/x", "STEADY"),
    errors.hidden_words(".leakscope/x"),
    errors.other_bisect(".leakscope/bisect-train"),
    errors.run_failed("Traceback …\nModuleNotFoundError: No module named 'x'"),
    errors.cannot_copy("/home/me", "it is a home folder, not one program's"),
    errors.bad_option("--budget", "lots", "a share up to 100 %", "--budget 1%"),
]


@pytest.mark.parametrize("error", _ALL, ids=lambda error: str(error.slug))
def test_message_has_its_four_lines(error: LeakscopeError) -> None:
    lines = str(error).split("\n")
    assert lines[0] == f"leakscope: {error.what}"
    assert lines[1].startswith("  why   ")
    assert lines[2].startswith("  do    ")
    assert lines[-1] == f"  see   docs/messages.md#{error.slug}"
    assert all(len(line) > 8 for line in lines)
    assert error.exit_code == 2


def test_message_reads_as_agreed() -> None:
    assert str(errors.no_program()) == (
        "leakscope: there is no program to watch\n"
        "  why   nothing follows the options\n"
        "  do    name a script, -m and a module, or a command, for example\n"
        "        leakscope run train.py\n"
        "  see   docs/messages.md#no-program"
    )


@pytest.mark.parametrize("make", [errors.command_not_found, errors.not_a_recording])
def test_foreign_names_cannot_drive_the_terminal(make: object) -> None:
    assert callable(make)
    message = str(make("a\x1b[2Jb\nleakscope: all is well"))
    assert "\x1b" not in message
    assert sum(line.startswith("leakscope:") for line in message.split("\n")) == 1


def test_every_slug_has_its_maker_and_is_listed_once() -> None:
    assert sorted(error.slug for error in _ALL) == sorted(errors.SLUGS)
    assert list(errors.SLUGS) == sorted(set(errors.SLUGS))


def test_every_slug_has_its_paragraph() -> None:
    sections = re.split(r"(?m)^## ", _MESSAGES.read_text(encoding="utf-8"))[1:]
    paragraphs = {
        title.strip(): body.strip() for title, _, body in (s.partition("\n") for s in sections)
    }
    assert sorted(paragraphs) == sorted(errors.SLUGS)
    assert [slug for slug, body in paragraphs.items() if len(body) < 100] == []


def test_no_slug_in_the_source_is_unknown() -> None:
    used = {
        keyword.value.value
        for path in _SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "slug" and isinstance(keyword.value, ast.Constant)
    }
    assert used == set(errors.SLUGS)
