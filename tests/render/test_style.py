"""A style fits the place where the report is shown."""

from __future__ import annotations

import io

import pytest

from leakscope.render import Style


class Terminal(io.StringIO):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "has_colour"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_in_a_terminal(environment: dict[str, str], has_colour: bool) -> None:
    assert Style.of(Terminal(), environment=environment).has_colour is has_colour


def test_a_pipe_has_neither_colour_nor_a_width_of_its_own() -> None:
    style = Style.of(io.StringIO(), environment={})
    assert (style.has_colour, style.width, style.is_ascii) == (False, 80, False)
    assert Style.of(io.StringIO(), environment={"FORCE_COLOR": "3"}).has_colour


@pytest.mark.parametrize(("columns", "width"), [("132", 132), ("wide", 80), ("0", 80), ("-5", 80)])
def test_columns_are_honoured_when_they_make_sense(columns: str, width: int) -> None:
    assert Style.of(io.StringIO(), environment={"COLUMNS": columns}).width == width


@pytest.mark.parametrize(
    ("encoding", "is_ascii"),
    [("utf-8", False), ("UTF8", False), ("utf_8_sig", False), ("latin-1", True), ("ascii", True)],
)
def test_alphabet_follows_the_encoding(encoding: str, is_ascii: bool) -> None:
    assert Style.of(Terminal(encoding), environment={}).is_ascii is is_ascii


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert not Style.of(stream, environment={}).has_colour


@pytest.mark.parametrize(("width", "columns"), [(1, 40), (80, 80), (500, 120)])
def test_lines_are_neither_too_narrow_nor_too_wide(width: int, columns: int) -> None:
    assert Style(width=width).columns == columns
