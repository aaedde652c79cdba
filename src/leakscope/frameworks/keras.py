"""Keras: batches as steps, optimizer steps where they are made eagerly, and each `fit` as a trial.

`CallbackList`, through which every batch of `fit`, `evaluate` and `predict` goes on any backend,
reads an attribute at the end of each batch; an optimizer reads one in each step.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any

from leakscope.frameworks.listener import Listener
from leakscope.frameworks.tensorflow import is_ready
from leakscope.model import Tally
from leakscope.observe.guard import guarded
from leakscope.observe.tap import Tap

_CALLBACKS = "keras.src.callbacks.callback_list"
_OPTIMIZERS = "keras.src.optimizers.base_optimizer"
_CONTEXT = "tensorflow.python.eager.context"
_BATCHES = ("train", "test", "predict")
_FIT = "fit"
_CALLS = {"train": _FIT, "test": "evaluate", "predict": "predict"}
_BLOCKS = "_in_begin_end_block_count"
_READ_IN_A_STEP = "gradient_accumulation_steps"


class KerasAdapter:
    """The hooks of one process."""

    def __init__(self, agent: Listener) -> None:
        self._agent = agent
        self._taps: list[Tap] = []
        self._ends: frozenset[CodeType] = frozenset()
        self._calls = Counter[str]()
        self._next_told = 1
        self._first_read = sys.maxsize

    def arm(self) -> None:
        for name, hook in (
            ("batches of Keras", self._hook_batches),
            ("fit calls of Keras", self._hook_fits),
            ("optimizer steps of Keras", self._hook_optimizers),
        ):
            self._guard(hook, name)()
        self._agent.piles.offer_census("keras", self._count)

    def disarm(self) -> None:
        for tap in self._taps:
            tap.remove()
        self._taps.clear()

    def _hook_batches(self) -> None:
        kind = sys.modules[_CALLBACKS].CallbackList
        self._ends = frozenset(getattr(kind, f"on_{what}_batch_end").__code__ for what in _BATCHES)
        ended = self._guard(self._batch_read, "batches of Keras")
        for what in _BATCHES:
            self._tap(kind, f"_async_{what}", on_read=ended)

    def _batch_read(self, callbacks: Any) -> None:
        # 0 is this function, 1 the guard, 2 the tap, 3 who reads.
        if sys._getframe(3).f_code in self._ends:
            self._agent.beat("batch")

    def _hook_fits(self) -> None:
        kind = sys.modules[_CALLBACKS].CallbackList
        self._begins: dict[CodeType, str] = {
            getattr(kind, f"on_{what}_begin").__code__: call for what, call in _CALLS.items()
        }
        began = self._guard(self._block_counted, "fit calls of Keras")
        self._tap(kind, _BLOCKS, on_set=began)

    def _block_counted(self, callbacks: Any, count: int) -> None:
        # 3 is `_on_begin`, 4 who calls it.
        frame = sys._getframe(3).f_back
        call = self._begins.get(frame.f_code) if frame is not None else None
        if count != 1 or call is None:
            return
        self._calls[call] += 1
        fits = self._calls[_FIT]
        if call == _FIT and fits >= self._next_told:
            # Few marks however many fits: each has its number, and what memory was then.
            self._next_told = fits + 1 + fits // 64
            self._agent.mark("fit", text=str(fits))

    def _count(self) -> tuple[Tally, ...]:
        return tuple(Tally("call", f"{call} calls", n, 0) for call, n in self._calls.items())

    def _hook_optimizers(self) -> None:
        kind = sys.modules[_OPTIMIZERS].BaseOptimizer
        self._step: CodeType = kind._backend_apply_gradients.__code__
        stepped = self._guard(self._optimizer_read, "optimizer steps of Keras")
        self._tap(kind, _READ_IN_A_STEP, on_read=stepped)

    def _optimizer_read(self, optimizer: Any) -> None:
        frame = sys._getframe(3)
        if frame.f_code is not self._step:
            return
        context = sys.modules.get(_CONTEXT)
        # While a function is traced, or where another backend compiles, this is no step.
        if context is not None and context.executing_eagerly():
            # With gradients accumulated it is read again further on in the same step.
            self._first_read = min(self._first_read, frame.f_lasti)
            if frame.f_lasti == self._first_read:
                self._agent.beat("optimizer")

    def _tap(self, kind: type, name: str, **listeners: Any) -> None:
        self._taps.append(Tap(kind, name, **listeners).install())

    def _guard(self, event: Callable[..., Any], name: str) -> Callable[..., None]:
        return guarded(event, name, self._agent.gap)


def meet(agent: Listener, *, is_loaded: bool = False) -> KerasAdapter | None:
    """The hooks of Keras 3 for this agent; None while it is not there."""
    is_there = all(is_ready(name) for name in (_CALLBACKS, _OPTIMIZERS))
    return KerasAdapter(agent) if is_there else None
