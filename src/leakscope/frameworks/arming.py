"""Which frameworks there are, and hooking those that the program has imported."""

from __future__ import annotations

from leakscope.frameworks import jax, keras, tensorflow, torch
from leakscope.frameworks.listener import Listener

NAMES = ("torch", "tensorflow", "keras", "jax")
_ADAPTERS = (torch, tensorflow, keras, jax)


class Arming:
    """The hooks of all frameworks for one agent; each is put in place once."""

    def __init__(self, agent: Listener) -> None:
        self._agent = agent
        self._waiting = list(_ADAPTERS)
        self._is_busy = False

    @property
    def has_armed(self) -> bool:
        return len(self._waiting) < len(_ADAPTERS)

    def arm(self, *, is_loaded: bool = False) -> None:
        """Hook what is there by now. `is_loaded`: an import has just been done."""
        # Arming allocates, which may start a collection, which would arm again.
        if self._is_busy:
            return
        self._is_busy = True
        try:
            for adapter in tuple(self._waiting):
                if adapter.arm(self._agent, is_loaded=is_loaded):
                    self._waiting.remove(adapter)
        finally:
            self._is_busy = False

    def disarm(self) -> None:
        for adapter in _ADAPTERS:
            adapter.disarm(self._agent)
