"""The pages about reports show real reports and name every word there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import golden
from leakscope.model import Outcome, Shape

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "reading-a-report.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"(?ms)^```\n(.*?)^```$", _PAGE)


def _golden(name: str) -> str:
    return (golden.GOLDEN / "render" / name).read_text(encoding="utf-8")


def test_the_page_shows_the_report_of_today() -> None:
    assert _BLOCKS[0] == _golden("growing.80.txt")


def test_the_page_shows_the_finding_of_today() -> None:
    assert _BLOCKS[1] in _golden("leaking.80.txt")


@pytest.mark.parametrize("word", [*(o.value.upper() for o in Outcome), *(s.value for s in Shape)])
def test_the_page_explains_every_verdict_and_shape(word: str) -> None:
    assert f"| **{word}** | " in _PAGE


_GLOSSARY = (
    "probe sample census survivor site keeper holder series verdict suspect finding gap pulse "
    "step phase floor held"
)


@pytest.mark.parametrize("word", ["blind spot", "in use", *_GLOSSARY.split()])
def test_the_glossary_has_the_word(word: str) -> None:
    assert f"| **{word}** | " in (_DOCS / "words.md").read_text(encoding="utf-8")
