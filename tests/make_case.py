"""Cases for rules, in a line each: a path as a look would have told it, and what is known of it.

case("local model in fit()", "Sequential", "._forward_hooks", "OrderedDict", item="method")
"""

from __future__ import annotations

from leakscope.attribute.suspect import Suspect
from leakscope.explain.catalogue import rule_for
from leakscope.explain.rule import Case
from leakscope.model import Frame, Gap, Holding, Link, Moment, Site, SiteTally

HERE = "/there/train.py"
KINDS = {"local": "local", "module": "module", "class": "class", "lru_cache": "cache"}


def link(via: str, type_: str, *, file: str = "", scope: str = "") -> Link:
    """A link as `observe/links.py` writes it: the name is the last word without its dot."""
    first = via.partition(" ")[0]
    if via.startswith("."):
        return Link(via, type_, "attribute", first[1:], file or HERE, scope)
    kind = KINDS.get(first, "item")
    name = via.split()[1] if kind in ("local", "module", "class") else ""
    where = (file or HERE) if kind != "item" else file
    return Link(via, type_, kind, name, where, scope)


def case(
    *path: str | Link,
    item: str = "Tensor [64, 64] float32",
    below: tuple[tuple[str, str], ...] = (),
    kind: str = "container",
    each: float = 17_000,
    parts: dict[str, float] | None = None,
    kept_by: str = "",
    frames: tuple[str, ...] = (HERE,),
    process: str = "main",
    steps_from: str = "optimizer",
    is_kept_in_hook: bool = False,
) -> Case:
    """`path` has links, or pairs of words for them; `below` is what one item leads to."""
    above = _links(path)
    tail = (Link("[x]", item, "item"), *(Link(via, what, "payload") for via, what in below))
    holding = Holding(
        at=Moment(0, 0, 60),
        process="1-7",
        kind=kind,
        path=(*above, *tail),
        grows_at=len(above) - 1,
        item=item,
        counts=((20, 20), (60, 60)),
        bytes_each=each,
        parts=parts or {"tensors": each},
        sites=(SiteTally(tuple(Frame(file, 3) for file in frames), 40),),
    )
    keeper = Site(HERE, 5, "fit", kept_by) if kept_by else None
    suspect = Suspect(
        holding=holding,
        share=0.9,
        count_per_step=1.0,
        site=None,
        keeper=keeper,
        named=above[-1],
        fingerprint="f",
        is_bounded="",
        snapshots=2,
        is_kept_in_hook=is_kept_in_hook,
    )
    return Case(suspect, process, steps_from)


def rule_of(one: Case) -> str:
    """The number of the rule that speaks."""
    gaps: list[Gap] = []
    code = rule_for(one, gaps).code
    assert gaps == []
    return code


def _links(path: tuple[str | Link, ...]) -> tuple[Link, ...]:
    words = iter(path)
    return tuple(word if isinstance(word, Link) else link(word, str(next(words))) for word in words)
