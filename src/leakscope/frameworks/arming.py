"""Which frameworks there are, and hooking those that the program has imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from leakscope.frameworks import jax, keras, tensorflow, torch
from leakscope.frameworks.listener import Listener
from leakscope.observe.heap.edges import EdgeProvider

NAMES = ("torch", "tensorflow", "keras", "jax")


class Adapter(Protocol):
    """The hooks of one framework for one agent."""

    def arm(self) -> None: ...
    def disarm(self) -> None: ...


_MEETINGS: tuple[Callable[..., Adapter | None], ...] = (
    torch.meet,
    tensorflow.meet,
    keras.meet,
    jax.meet,
)


class Arming:
    """The hooks of all frameworks for one agent; each is put in place once."""

    def __init__(self, agent: Listener) -> None:
        self._agent = agent
        self._waiting = list(_MEETINGS)
        self._armed: list[Adapter] = []
        self._is_busy = False

    @property
    def has_armed(self) -> bool:
        return bool(self._armed)

    def arm(self, *, is_loaded: bool = False) -> None:
        """Hook what is there by now. `is_loaded`: an import has just been done."""
        # Arming allocates, which may start a collection, which would arm again.
        if self._is_busy:
            return
        self._is_busy = True
        try:
            for meet in tuple(self._waiting):
                adapter = meet(self._agent, is_loaded=is_loaded)
                if adapter is not None:
                    self._waiting.remove(meet)
                    self._armed.append(adapter)
                    adapter.arm()
        finally:
            self._is_busy = False

    def disarm(self) -> None:
        for adapter in self._armed:
            adapter.disarm()
        self._armed.clear()


def edge_providers() -> tuple[EdgeProvider, ...]:
    """What each framework adds to heap snapshots; imported with the agent, asked when loaded."""
    from leakscope.frameworks.jax_edges import JaxEdges
    from leakscope.frameworks.tensorflow_edges import TensorFlowEdges
    from leakscope.frameworks.torch_edges import TorchEdges
    from leakscope.frameworks.torch_names import TorchNames

    return TorchEdges(), TorchNames(), TensorFlowEdges(), JaxEdges()
