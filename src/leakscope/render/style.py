"""Where a report will be shown: how wide, in which colours, in which alphabet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

NARROWEST = 40
"""Below this no layout helps; the terminal may wrap."""
WIDEST = 120
"""Beyond this the eye loses the line."""
WIDTH_WITHOUT_TERMINAL = 80


@dataclass(frozen=True, slots=True)
class Style:
    width: int = WIDTH_WITHOUT_TERMINAL
    has_colour: bool = False
    is_ascii: bool = False
    """True where the output cannot show characters beyond ASCII."""
    recording: str | None = None
    """What to type after `leakscope report`; the run's id if nobody said."""

    @classmethod
    def of(
        cls,
        stream: IO[str],
        *,
        recording: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Style:
        """The style that fits a stream: a terminal, a pipe, a file, a CI log.

        Honours COLUMNS, NO_COLOR (https://no-color.org), FORCE_COLOR and TERM=dumb.
        """
        env = os.environ if environment is None else environment
        is_terminal = _is_terminal(stream)
        return cls(
            width=_width(env, is_terminal),
            has_colour=_has_colour(env, is_terminal),
            is_ascii=not (getattr(stream, "encoding", None) or "utf-8")
            .lower()
            .replace("_", "-")
            .startswith(("utf-8", "utf8", "utf-16")),
            recording=recording,
        )

    @property
    def columns(self) -> int:
        """Cells a line may fill."""
        return min(max(self.width, NARROWEST), WIDEST)


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a replaced or closed stdout
        return False


def _width(env: Mapping[str, str], is_terminal: bool) -> int:
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    if is_terminal:
        return shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns
    return WIDTH_WITHOUT_TERMINAL


def _has_colour(env: Mapping[str, str], is_terminal: bool) -> bool:
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal and env.get("TERM") != "dumb"
