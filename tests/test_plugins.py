"""Rules as files: the folder is the registry, and what fails is a gap."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from leakscope import explain, plugins
from leakscope.explain import catalogue
from leakscope.explain.rule import HARMLESS_HEADINGS, HEADINGS, Harmless, Page, Rule
from leakscope.model import Gap

_FOLDER = Path(explain.__file__).parent / "rules"
_ROOT = Path(__file__).parents[1]


def test_every_file_is_one_rule_and_is_named_after_it() -> None:
    named = {f"{one.code.lower()}_{one.name.replace('-', '_')}" for one in _catalogue().pages}
    assert named == {path.stem for path in _FOLDER.glob("ls*.py")}
    assert _catalogue().gaps == ()


@pytest.mark.parametrize("page", catalogue.load_catalogue().pages, ids=lambda page: page.code)
def test_every_page_has_its_headings_in_order(page: Page) -> None:
    wanted = HARMLESS_HEADINGS if isinstance(page, Harmless) else HEADINGS
    assert tuple(re.findall(r"(?m)^## (.+)$", page.page)) == wanted
    first, _, rest = page.page.partition("\n")
    assert first.endswith(".")
    assert len(rest) > 200


def test_harmless_behaviour_has_numbers_of_its_own() -> None:
    assert all(one.code < "LS1" for one in _catalogue().harmless)
    assert all(one.code > "LS1" for one in _catalogue().rules)


def test_somebody_takes_what_nobody_else_wants() -> None:
    assert _catalogue().rules[-1].code == "LS501"


def test_the_page_of_rules_is_as_the_rules_are() -> None:
    from docs.make_rules import document  # type: ignore[import-not-found,unused-ignore]

    assert (_ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == document()


def test_a_plugin_that_cannot_be_loaded_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("LS999", "no_such_package.rules:LS999", catalogue.GROUP)
    odd = EntryPoint("LS998", "json:dumps", catalogue.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: (broken, odd))
    found, gaps = plugins.load(catalogue.FOLDER, catalogue.GROUP, Page)
    assert len(found) == len(_catalogue().pages)
    assert [gap.what for gap in gaps] == ["plugin LS998", "plugin LS999"]
    assert "not a Page" in gaps[0].why
    assert "no_such_package" in gaps[1].why


def test_a_rule_that_raises_is_a_gap() -> None:
    gaps: list[Gap] = []

    def fail() -> bool:
        raise KeyError("parts")

    assert plugins.guarded(fail, "rule LS999", gaps) is None
    assert gaps == [Gap("plugin rule LS999", "it failed: KeyError: 'parts'")]


def _catalogue() -> catalogue.Catalogue:
    return catalogue.load_catalogue()


def test_rules_are_the_heaviest_first() -> None:
    weights = [one.weight for one in _catalogue().rules]
    assert weights == sorted(weights, reverse=True)
    assert all(isinstance(one, Rule) for one in _catalogue().rules)
