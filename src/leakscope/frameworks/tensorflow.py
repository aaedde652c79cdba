"""TensorFlow: calls of compiled functions as steps, the lines behind traced graphs, its registries.

`Optimizer.apply` and `train_step` run when a function is traced and not when it is called, so what
is counted is the call: at its end, and only outside of tracing, `tf.function` reads one attribute.
Graphs are noted when they are made, with the lines of the program that led there: the largest leaks
of TensorFlow keep graphs, and neither a model nor a variable of the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from leakscope.frameworks.listener import Listener
from leakscope.model import Gap, Tally
from leakscope.observe.guard import guarded
from leakscope.observe.origins import origins, places
from leakscope.observe.tap import CountTap, Tap

_FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
_GRAPHS = "tensorflow.python.framework.func_graph"
_OPS = "tensorflow.python.framework.ops"
_WHOLE = "tensorflow"
_PORT = "tensorflow.python.util._pywrap_util_port"
"""Knows whether oneDNN is on, which depends on the processor too: on an AMD EPYC without AVX-512 it
is off. Imported after the three above (TensorFlow 2.21)."""

_READ_AT_THE_END = "_key_for_call_stats"
"""Of a `tf.function`: read once in each call that is made eagerly, after it (TensorFlow 2.4 to
2.21, `Function.__call__`)."""

_SET_ONCE = "_saving_errors"
"""Of a graph: set in its `__init__`, and read only when it is saved."""

_CALLBACKS = "_py_funcs_used_in_graph"
"""Of a graph: read when a Python function is put into it (`from_generator`, `py_function`), and by
nobody else."""

_FUNCTION, _DATASET = "function", "Dataset_"
"""What a graph was traced for, by its name: each `fit` and `predict` of Keras makes a dataset with
three functions of its own (`Dataset_map_grab_batch`), and none of them is the program's."""

_POOL = "TensorFlow's own pool (oneDNN)"


class TensorFlowAdapter:
    """The hooks of one process."""

    def __init__(self, agent: Listener) -> None:
        self._agent = agent
        self._taps: list[Tap] = []

    def arm(self) -> None:
        for name, hook in (
            ("calls of tf.function", self._hook_calls),
            ("traced graphs", self._hook_graphs),
            ("callbacks of datasets", self._hook_callbacks),
            ("TensorFlow's pool", self._tell_pool),
        ):
            self._guard(hook, name)()
        self._agent.piles.offer_census("tensorflow", count_registries)
        self._agent.piles.offer_novelty(lambda: len(origins.made))

    def disarm(self) -> None:
        for tap in self._taps:
            tap.remove()
        self._taps.clear()

    def _hook_calls(self) -> None:
        counter = self._agent.counters["call"]
        look = self._guard(counter.look, "calls of tf.function")
        kind = sys.modules[_FUNCTIONS].Function
        self._taps.append(CountTap(kind, _READ_AT_THE_END, counter, look).install())

    def _hook_graphs(self) -> None:
        note = self._guard(
            lambda graph, _: origins.note(graph, _purpose_of(graph)), "traced graphs"
        )
        kind = sys.modules[_GRAPHS].FuncGraph
        self._taps.append(Tap(kind, _SET_ONCE, on_set=note).install())

    def _hook_callbacks(self) -> None:
        note = self._guard(lambda _: places.note(_CALLBACKS), "callbacks of datasets")
        kind = sys.modules[_OPS].Graph
        self._taps.append(Tap(kind, _CALLBACKS, on_read=note).install())

    def _tell_pool(self) -> None:
        self._agent.met_large_heap()
        if not has_pool():
            return
        self._agent.met_pool(_POOL)
        self._agent.gap(
            Gap(
                "bytes in use, exactly",
                "TensorFlow on the CPU takes regions from malloc that double in size, and tells "
                "nobody how much of them is used: resident memory without what malloc holds free "
                "stands for it",
            )
        )

    def _guard(self, event: Callable[..., Any], name: str) -> Callable[..., None]:
        return guarded(event, name, self._agent.gap)


def has_pool() -> bool:
    """Does TensorFlow hand out memory of its own? Yes, where it cannot be asked: what malloc has in
    use would be wrong with a pool, what is resident is only less exact without one."""
    port = sys.modules.get(_PORT)
    return port is None or bool(port.IsMklEnabled())


def _purpose_of(graph: Any) -> str:
    return _DATASET if str(graph.name).startswith(_DATASET) else _FUNCTION


def count_registries() -> tuple[Tally, ...]:
    """What TensorFlow keeps for itself, by its own tables; O(1)."""
    ops: Any = sys.modules[_OPS]
    default = ops._default_graph_stack._global_default_graph
    callbacks = getattr(default, "_py_funcs_used_in_graph", ()) if default is not None else ()
    return (
        Tally("FuncGraph", "graphs of functions alive", origins.alive_for[_FUNCTION], 0),
        Tally("FuncGraph", "graphs of functions traced", origins.made_for[_FUNCTION], 0),
        Tally("gradient", "gradient registry", len(ops.gradient_registry._registry), 0),
        Tally("function", "callbacks of the default graph", len(callbacks), 0),
    )


def meet(agent: Listener, *, is_loaded: bool = False) -> TensorFlowAdapter | None:
    """The hooks of TensorFlow for this agent; None while it is not there, or not all there yet."""
    is_there = all(is_ready(name) for name in (_OPS, _GRAPHS, _FUNCTIONS))
    has_told = is_ready(_PORT) or is_ready(_WHOLE)
    return TensorFlowAdapter(agent) if is_there and has_told else None


def is_ready(name: str) -> bool:
    """Has this module been imported, to its end?"""
    module = sys.modules.get(name)
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    )
