"""A path in, the name of the bug out: the same on a laptop and on 64 ranks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from leakscope.model import Link

_DIGITS = 8
_LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages|lib/python\d[\d.]*)/|^<")


def fingerprint(links: Sequence[Link], grows_at: int, kind: str) -> str:
    """Eight hexadecimal digits that name what grows and who holds it.

    Only names go in, as the source has them: which scope, which name, how it is held. Addresses,
    sizes, indices, keys, line numbers and folders stay out, so a moved line or another machine
    does not make another bug. The path counts from the nearest name in the user's own code:
    what lies above it is how this run happened to get there.

    Args:
        links: the path from a root to what is kept.
        grows_at: index of the thing that grows.
        kind: what grows: container, graph, cycle …
    """
    held = tuple(links[: max(grows_at, 0) + 1])
    start = _start(held)
    pairs = [
        f"{_owner(link, held[index - 1] if index else None)}.{_edge(link)}"
        for index, link in enumerate(held)
        if index >= start
    ]
    words = "\n".join([kind, *pairs])
    return hashlib.sha1(words.encode(errors="backslashreplace"), usedforsecurity=False).hexdigest()[
        :_DIGITS
    ]


def _start(held: Sequence[Link]) -> int:
    """The nearest name of the user's at or above what grows; a library's own says too little."""
    for index in range(len(held) - 1, -1, -1):
        link = held[index]
        if link.name and not _LIBRARY.search(link.file.replace("\\", "/")):
            return index
    return 0


def _owner(link: Link, above: Link | None) -> str:
    """The class, function or module that the name is written in; else the type that holds it."""
    if link.scope or link.file:
        return f"{_stem(link.file)}:{link.scope}"
    return above.type.rpartition(".")[2] if above is not None else ""


def _edge(link: Link) -> str:
    return f"{link.kind} {link.name}" if link.name else f"{link.kind or 'item'} [x]"


def _stem(file: str) -> str:
    path = PurePosixPath(file.replace("\\", "/"))
    return path.parent.name if path.stem == "__init__" else path.stem
