"""JAX: what it compiles, for which line, and how many executables are alive.

A jitted call never enters Python, so there is no step to hear: the program says `leakscope.step()`,
or the clock counts. Compilations are told by `jax.monitoring`, in the thread and on the stack of
the line that caused them; a call that finds its executable tells nothing and costs nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from leakscope.frameworks.listener import Listener
from leakscope.frameworks.tensorflow import is_ready
from leakscope.model import Gap, Tally
from leakscope.observe.guard import guarded
from leakscope.observe.piles import Making, Pile, our_tables, program_frames

_MONITORING = "jax._src.monitoring"
_BACKENDS = "jax._src.xla_bridge"
_START_UP_PAUSE_NS = 1_000_000_000
_CACHES = "JAX's compilation caches"
_COMPILED = "/jax/core/compile/backend_compile_duration"


class JaxAdapter:
    """The listener of one process."""

    def __init__(self, agent: Listener) -> None:
        self._agent = agent
        self._made: Counter[Making] = Counter()
        self._warm_ns = 0
        self._listener: Callable[..., None] | None = None
        our_tables.append(self._made)

    def arm(self) -> None:
        guarded(self._hook_compilations, "compilations of JAX", self._agent.gap)()
        self._agent.piles.offer(self._pile)
        self._agent.piles.offer_census("jax", self._count)
        self._agent.piles.offer_novelty(lambda: len(self._made))

    def disarm(self) -> None:
        monitoring: Any = sys.modules.get(_MONITORING)
        if self._listener is not None and hasattr(monitoring, "unregister_event_duration_listener"):
            monitoring.unregister_event_duration_listener(self._listener)
        self._listener = None

    def _hook_compilations(self) -> None:
        note = guarded(self._note, "compilations of JAX", self._agent.gap)

        def heard(event: str, seconds: float, **told: Any) -> None:
            if event == _COMPILED:
                note(told.get("fun_name"))

        monitoring: Any = sys.modules[_MONITORING]
        monitoring.register_event_duration_secs_listener(heard)
        self._listener = heard

    def _note(self, name: object) -> None:
        if not self._made:
            self._tell_gap()
        making = (name if type(name) is str else "", program_frames())
        self._made[making] += 1
        if self._made[making] == 1:
            self._note_start_up()

    def _note_start_up(self) -> None:
        """Functions compiled for the first time, soon after each other, are the program starting
        up; what memory does meanwhile is not what its steps do."""
        now_ns = monotonic_ns()
        if not self._warm_ns or now_ns - self._warm_ns < _START_UP_PAUSE_NS:
            self._warm_ns = now_ns
            self._agent.mark("compiled")

    def _tell_gap(self) -> None:
        self._agent.gap(
            Gap(
                "bytes of compiled functions (JAX)",
                "executables do not tell their size on the CPU, and memory_stats() is None there: "
                "how many are alive is counted, and growth that nothing else accounts for is "
                "theirs if they pile up with it",
            )
        )

    def _pile(self) -> Pile | None:
        alive = count_executables()
        if alive is None or not self._made:
            return None
        return Pile(_CACHES, "executable", alive, dict(self._made))

    def _count(self) -> tuple[Tally, ...]:
        alive = count_executables()
        if alive is None or not self._made:
            return ()
        made = Tally("executable", "compilations", self._made.total(), 0)
        return made, Tally("executable", "executables alive", alive, 0)


def count_executables() -> int | None:
    """Of all backends that the program has initialised; None while it has none."""
    backends = getattr(sys.modules.get(_BACKENDS), "_backends", None)
    if not backends:
        return None
    return sum(len(client.live_executables()) for client in list(backends.values()))


def meet(agent: Listener, *, is_loaded: bool = False) -> JaxAdapter | None:
    """The hooks of JAX for this agent; None while it is not there."""
    is_there = all(is_ready(name) for name in (_MONITORING, _BACKENDS))
    return JaxAdapter(agent) if is_there else None
