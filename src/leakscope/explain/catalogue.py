"""All rules there are, and which one a case belongs to."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

from leakscope import model, plugins
from leakscope.explain.rule import Case, Harmless, Page, Rule, RunCase
from leakscope.model import Gap

FOLDER = "leakscope.explain.rules"
GROUP = "leakscope.rules"


class Catalogue(NamedTuple):
    """Ours and those of installed packages."""

    rules: tuple[Rule, ...]
    """The heaviest first."""
    harmless: tuple[Harmless, ...]
    gaps: tuple[Gap, ...]

    @property
    def pages(self) -> tuple[Page, ...]:
        return tuple(sorted((*self.rules, *self.harmless), key=lambda one: one.code))


@cache
def load_catalogue() -> Catalogue:
    """Read once. Of two rules with one number the first is taken, and a gap tells of the other."""
    loaded, gaps = plugins.load(FOLDER, GROUP, Page)
    pages: dict[str, Page] = {}
    doubles = [
        Gap(f"rule {one.code}", f"{one.name}: the number is taken")
        for one in loaded
        if pages.setdefault(one.code, one) is not one
    ]
    rules = [one for one in pages.values() if isinstance(one, Rule)]
    rules.sort(key=lambda one: (-one.weight, one.code))
    harmless = [one for one in pages.values() if isinstance(one, Harmless)]
    harmless.sort(key=lambda one: one.code)
    return Catalogue(tuple(rules), tuple(harmless), (*gaps, *doubles))


def rule_for(case: Case, gaps: list[Gap]) -> Rule:
    """The heaviest rule that matches; there is always one."""
    for one in load_catalogue().rules:
        if plugins.guarded(partial(one.matches, case), f"rule {one.code}", gaps):
            return one
    raise LookupError("no rule takes what nobody else wants")


def harmless_in(case: RunCase, gaps: list[Gap]) -> tuple[model.Harmless, ...]:
    """What looks like a leak in this run and is none, each with its sentence."""
    found = {}
    for one in load_catalogue().harmless:
        said = plugins.guarded(partial(one.says, case), f"rule {one.code}", gaps)
        if said:
            found[one] = said
    spoken = {one.code for one in found}
    return tuple(
        model.Harmless(one.code, one.name, said)
        for one, said in found.items()
        if not one.unless & spoken
    )
