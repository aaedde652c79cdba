"""The pages link to what exists, and the page of commands names every option there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from leakscope import cli

_ROOT = Path(__file__).parents[1]
_PAGES = (
    *(_ROOT / name for name in ("README.md", "CONTRIBUTING.md", "NEWS.md", "AGENTS.md")),
    *sorted((_ROOT / "docs").rglob("*.md")),
)
_LINK = re.compile(r"(?<!!)\[[^\]\n]+(?:\n[^\]\n]+)?\]\(([^()\s]+)\)")
_FENCE = re.compile(r"(?ms)^ *(```+|~~~+).*?^ *\1 *$")
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"(?m)^#{1,6} +(.+?) *#* *$")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_WRITTEN_BY_MAKE = re.compile(r"--markdown (\S+)")


def _without_fences(page: str) -> str:
    return _FENCE.sub("", page)


def _links(page: Path) -> Iterator[str]:
    """Targets of the links to files of this repository."""
    text = _CODE.sub("code", _without_fences(page.read_text(encoding="utf-8")))
    for match in _LINK.finditer(text):
        target = match.group(1)
        if not re.match(r"[a-z]+:", target):
            yield target


def _anchors(page: Path) -> set[str]:
    """Names that the headings of a page get on GitHub."""
    anchors: set[str] = set()
    for heading in _HEADING.findall(_without_fences(page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        same = sum(1 for other in anchors if re.fullmatch(rf"{re.escape(name)}(-\d+)?", other))
        anchors.add(f"{name}-{same}" if same else name)
    return anchors


def _generated() -> set[Path]:
    """Pages that `make bench` writes: a fresh clone may be without them."""
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8")
    return {_ROOT / name for name in _WRITTEN_BY_MAKE.findall(makefile)}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """Breaks when a page or a heading is renamed and a link to it is forgotten."""
    broken = []
    for target in _links(page):
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if file in _generated() and not file.exists() and not anchor:
            continue
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert not broken


def test_links_are_found() -> None:
    """Breaks when the search above finds nothing, and the test of links says nothing."""
    assert "docs/start.md" in set(_links(_ROOT / "README.md"))
    assert "exit-codes" in _anchors(_ROOT / "docs" / "api.md")


def test_the_first_page_leads_to_every_other() -> None:
    """Breaks when a page is added that nobody can find."""
    index = _ROOT / "docs" / "index.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in _links(index)}
    assert {page for page in index.parent.rglob("*.md") if page != index} <= linked


def _documented(command: str) -> set[str]:
    """The options in the table of a command's section."""
    page = (_ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(f"\n## leakscope {command}\n")
    section = rest.partition("\n## ")[0]
    cells = re.findall(r"(?m)^\| (`-[^|]*) \|", section)
    return {option for cell in cells for option in _OPTION.findall(cell)}


@pytest.mark.parametrize("command", ["run", "report"])
def test_the_page_of_commands_names_every_option(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when an option is added, renamed or taken away and the page is forgotten."""
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    _, _, listed = capsys.readouterr().out.partition("\noptions:\n")
    lines = re.findall(r"(?m)^  (-.*?)(?:   .*)?$", listed)
    assert lines
    offered = {option for line in lines for option in _OPTION.findall(line)}
    assert _documented(command) == offered
