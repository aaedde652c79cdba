"""A finding of the run, and what its source alone would have raised: do the two agree?"""

from __future__ import annotations

from collections.abc import Mapping

from leakscope.attribute.suspect import Suspect
from leakscope.lint.hit import Hit
from leakscope.lint.reading import hits_in
from leakscope.model import Gap, Site


class Sources:
    """The recorded texts, each read by the linter when it is first asked for."""

    def __init__(self, texts: Mapping[str, str], gaps: list[Gap]) -> None:
        self._texts = texts
        self._gaps = gaps
        self._hits: dict[str, list[Hit]] = {}

    def confirm(self, suspect: Suspect, rule: str) -> bool:
        """The linter suspects the keeping line too, or this rule in the same function."""
        if suspect.keeper is None:
            return False
        return any(
            hit.line == suspect.keeper.line
            or (hit.rule == rule and _is_near(hit, suspect.keeper, suspect.site))
            for hit in self._hits_of(suspect.keeper.file)
        )

    def _hits_of(self, file: str) -> list[Hit]:
        if file not in self._hits:
            try:
                self._hits[file] = hits_in(self._texts.get(file, ""), file, gaps=self._gaps)
            except (SyntaxError, ValueError, RecursionError):
                self._hits[file] = []  # it ran, but under another Python than ours
        return self._hits[file]


def _is_near(hit: Hit, keeper: Site, site: Site | None) -> bool:
    """On the line that makes what is kept: the other end of the same leak."""
    return site is not None and site.file == keeper.file and hit.line == site.line
