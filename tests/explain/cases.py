"""Cases for rules, made by hand: what grows, who holds it, what one item keeps."""

from __future__ import annotations

import textwrap

from leakscope.attribute.suspect import Suspect
from leakscope.explain.catalogue import rule_for
from leakscope.explain.rule import Case
from leakscope.model import Gap, Holding, Link, Moment, Site

FILE = "/there/train.py"


def link(via: str, kind_of: str, *, scope: str = "", file: str = FILE) -> Link:
    """`.losses` is an attribute of the class `scope`; anything else is local to that function."""
    if via.startswith("."):
        return Link(via, kind_of, "attribute", via[1:], file, scope)
    if via.startswith("["):
        return Link(via, kind_of, "item")
    return Link(f"local {via} in {scope}()", kind_of, "local", via, file, scope)


def case(
    *above: Link,
    below: tuple[Link, ...] = (),
    item: str = "Tensor [4] float32",
    kind: str = "container",
    steps_from: str = "optimizer",
    source: str = "",
    keeps: str = "",
    **parts: float,
) -> Case:
    """One suspect. `keeps` is (part of) the line of the source that keeps it."""
    text = textwrap.dedent(source)
    lines = text.splitlines()
    number = next((n for n, one in enumerate(lines, 1) if keeps and keeps in one), 0)
    keeper = Site(FILE, number, None, lines[number - 1].strip()) if number else None
    assert bool(keeps) == bool(number), f"no line with {keeps}"
    holding = Holding(
        at=Moment(0, 0),
        process="1-7",
        kind=kind,
        path=(*above, *below),
        grows_at=len(above) - 1,
        item=item,
        counts=((10, 10), (20, 20)),
        bytes_each=sum(parts.values()),
        parts=parts,
    )
    suspect = Suspect(holding, 1.0, 1.0, None, keeper, above[-1], "0", "", 1)
    return Case(suspect, steps_from=steps_from, sources={FILE: text} if text else {})


def rule_of(made: Case) -> str:
    """The number of the rule that a case gets, with no rule failing."""
    gaps: list[Gap] = []
    found = rule_for(made, gaps).code
    assert gaps == []
    return found
