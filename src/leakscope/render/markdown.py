"""Words in, Markdown out: text that stays text, code, tables, fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """The last `right` columns are aligned to the right."""
    left = len(headers) - right
    rule = ["---" if index < left else "--:" for index in range(len(headers))]
    lines = [headers, rule, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Everything that starts something in GitHub's Markdown: emphasis, links, code, HTML, tables,
# headings, mentions of people (@) and of issues (#).
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#@!$])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}


def escaped(words: str) -> str:
    """Clean words as plain Markdown text: nothing in them is layout."""
    words = words.replace("&", "&amp;")
    words = _SPECIAL.sub(lambda m: _ENTITIES.get(m.group(), "\\" + m.group()), words)
    return re.sub(r"^(\s*)([-+=]|\d+[.)])(?=\s|$)", r"\1\\\2", words)


def code(words: str) -> str:
    """A code span that holds any words, even ones with backticks or pipes."""
    if not words.strip():
        return "` `"
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if words[0] in "` " or words[-1] in "` " else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def fenced(lines: Iterable[str], language: str = "") -> str:
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"
