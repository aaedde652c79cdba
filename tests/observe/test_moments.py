"""Another thread's generator is waited for where a tuple may be filled from it, and only there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from leakscope.observe.moments import wait_for_calm


def _loop(items: Iterator[int]) -> None:
    for _ in items:
        pass


def _delegate(items: Iterator[int]) -> None:
    def outer() -> Iterator[int]:
        yield from items

    _loop(outer())


def _enumerate(items: Iterator[int]) -> None:
    for _ in enumerate(items):
        pass


@pytest.mark.parametrize("consume", [_loop, _delegate, _enumerate])
def test_a_loop_fills_no_tuple(consume: Callable[[Iterator[int]], None]) -> None:
    _while_consuming(consume, wait_for_calm)


@pytest.mark.parametrize("consume", [tuple, list, sum])
def test_a_call_may(consume: Callable[[Iterator[int]], object]) -> None:
    def look() -> None:
        with pytest.raises(RuntimeError, match="generators"):
            wait_for_calm()

    _while_consuming(consume, look)


def _while_consuming(consume: Callable[[Iterator[int]], object], look: Callable[[], None]) -> None:
    """Look while another thread waits inside of a generator that it consumes so."""
    is_inside, may_end = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        is_inside.set()
        may_end.wait()
        yield 1

    thread = threading.Thread(target=lambda: consume(items()))
    thread.start()
    try:
        assert is_inside.wait(10)
        look()
    finally:
        may_end.set()
        thread.join()
