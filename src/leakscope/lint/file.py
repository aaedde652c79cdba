"""One file as a check sees it."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.lint.containers import Containers
from leakscope.lint.kinds import Kinds
from leakscope.lint.outline import Outline, parse


class File(NamedTuple):
    outline: Outline
    kinds: Kinds
    containers: Containers

    @classmethod
    def of(cls, text: str) -> File:
        """Raises what `ast.parse` raises."""
        outline = parse(text)
        return cls(outline, Kinds(outline), Containers(outline))
