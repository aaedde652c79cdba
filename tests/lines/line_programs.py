"""Functions whose lines take what is said beside them. Watched by the tests beside this file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

KEPT: list[object] = []


def allocates(n_items: int) -> int:
    kept = bytes(3_000_000)
    numbers = list(range(n_items))
    KEPT.append((kept, numbers))
    scratch = bytes(5_000_000)
    return len(scratch)


def handles(request: int) -> int:
    kept = bytes(10_000)
    scratch = bytes(50_000)
    KEPT.append(
        kept,
    )
    return len(scratch) + request


def loops(n: int) -> None:
    out: list[object] = []
    for _ in range(n):
        out.append(bytes(2_000))
        n -= 1
    KEPT.append(out)


def calls_handles(n: int) -> None:
    for index in range(n):
        handles(index)
    own = bytes(200_000)
    KEPT.append(own)


def generates(n: int) -> Iterator[object]:
    for _ in range(n):
        item = bytes(20_000)
        yield item


def recurses(depth: int) -> int:
    own = bytes(400_000)
    if depth:
        return recurses(depth - 1)
    return len(own)


def fails() -> None:
    KEPT.append(bytes(700_000))
    raise ValueError("on purpose")


async def awaits(n: int) -> int:
    own = bytes(600_000)
    KEPT.append(own)
    for _ in range(n):
        await asyncio.sleep(0)
    return n


class Owner:
    def __init__(self) -> None:
        self.data: object = None

    def fills(self) -> None:
        self.data = bytes(900_000)

    @staticmethod
    def stands_alone() -> None:
        KEPT.append(bytes(800_000))


def fills_and_drops(n: int) -> int:
    out = []
    for index in range(n):
        item = {"index": index, "data": bytes(3_000)}
        out.append(item)
    return len(out)
