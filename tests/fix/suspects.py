"""Suspects for tests: a program with an arrow at its keeping statement, and what a look saw."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

from leakscope.attribute.suspect import Suspect
from leakscope.fix.propose import propose
from leakscope.fix.rewrite import rewrite
from leakscope.model import Frame, Holding, Link, Moment, Site, SiteTally

FILE = "/home/me/train.py"
ARROW = "  # <-"

GRAPH = {"saved": 9000.0, "nodes": 900.0, "tensors": 500.0}
TENSORS = {"tensors": 9000.0}
LOSS = "Tensor [] float32, grad_fn MeanBackward0"


class Case(NamedTuple):
    what: str
    holder: str
    """`local losses in train`, `attribute sums of Meter`, `global LOG`, `closure kept of hook`."""
    source: str
    added: tuple[str, ...] = ()
    """Lines that the diff adds, without their indents; none where nothing may be changed."""
    type: str = "list"
    kind: str = "container"
    item: str = LOSS
    below: tuple[tuple[str, str], ...] = ()
    """(via, type) of the links under the thing that grows."""
    parts: dict[str, float] = GRAPH
    bytes_each: float = 10_000.0
    maker: int = 0
    """Line that made what is kept; 0 for the arrow's."""
    bound: str = ""


def text_of(case: Case) -> str:
    return dedent(case.source).strip("\n").replace(ARROW, "") + "\n"


def suspect_of(case: Case) -> Suspect:
    lines = dedent(case.source).strip("\n").split("\n")
    line = next(number for number, one in enumerate(lines, 1) if one.endswith(ARROW))
    kind, name, *scope = case.holder.replace(" in ", " ").replace(" of ", " ").split()
    link = Link(f".{name}", case.type, kind, name, FILE, scope[0] if scope else "", line)
    below = case.below or (("[x]", case.item),) if case.kind != "graph" else case.below
    held = [link]
    at = 0
    if case.kind == "container in dict":
        held.append(Link("[x]", "list", "item"))
        at = 1
    path = (*held, *(Link(via, kind_of, "item") for via, kind_of in below))
    moment = Moment(0, 0, 90)
    frame = Frame(FILE, case.maker or line, scope[0] if scope else "")
    holding = Holding(
        moment,
        "1-1",
        "container" if case.kind == "container in dict" else case.kind,
        path,
        at,
        "graph node" if case.kind == "graph" else case.item,
        ((30, 30), (90, 90)),
        case.bytes_each,
        parts=case.parts,
        sites=(SiteTally((frame,), 60),),
    )
    return Suspect(
        holding=holding,
        share=0.9,
        count_per_step=1.0,
        site=Site(FILE, case.maker or line),
        keeper=Site(FILE, line),
        named=link,
        fingerprint="01234567",
        is_bounded=case.bound,
        snapshots=2,
    )


def patched(case: Case) -> str | None:
    """The whole new text, or None where nothing is proposed."""
    text = text_of(case)
    change = propose(suspect_of(case), {FILE: text})
    return rewrite(text, change.edits) if change is not None else None
