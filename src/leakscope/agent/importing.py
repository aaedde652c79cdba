"""Is the program still importing? What modules take is no leak, and no look is worth its price yet.

Only asked by the clock: what steps is done with its imports.
"""

from __future__ import annotations

import sys
from time import monotonic_ns
from types import FrameType

_IMPORTER = "<frozen importlib._bootstrap>"
_LONGEST_NS = 3_000_000_000
"""A package may work for a while within its own import and load nothing meanwhile: transformers
reads its files for half a second. A program that is itself run by an import is believed to be at
work after so long without a new module. No other value was tried."""


_POOLING = ("tensorflow.python.framework.ops", "jax._src.core")


def has_pooling_framework() -> bool:
    """Is TensorFlow or JAX loaded? They take memory in pools, and seconds to start up."""
    return any(name in sys.modules for name in _POOLING)


class Importing:
    """Remembers which modules there were when it was last asked."""

    def __init__(self) -> None:
        self._modules = self._more = self._most = 0
        self._came_ns = 0
        self._asked_ns = 0
        self._began_ns = 0
        self._ended_ns = 0
        self.is_loading = False
        """As it was when last asked: modules, and not only what else counts."""

    def note(self, more: int) -> None:
        """Those that are there now are known, ours among them; `more` is what else counts."""
        self._modules, self._more = len(sys.modules), more
        self._most = max(self._most, self._modules)

    def goes_on(self, more: int) -> bool:
        """Has a module come since, or is the main thread on its way to the next?"""
        most, others, now_ns = self._most, self._more, monotonic_ns()
        asked_ns, self._asked_ns = self._asked_ns, now_ns
        self.note(more)
        # More than ever before: a program that imports the same modules again is at work.
        has_come = self._modules > most
        if has_come or self._more != others:
            self._came_ns = now_ns
        is_recent = now_ns - self._came_ns < _LONGEST_NS
        self.is_loading = has_come or (is_recent and _is_main_thread_importing())
        if self.is_loading:
            self._began_ns = self._began_ns or asked_ns or now_ns
            self._ended_ns = now_ns
        return self.is_loading or self._more != others

    def take_stretch(self) -> tuple[int, int] | None:
        """From when to when modules came, and nothing else; told once, when they have stopped."""
        began_ns, self._began_ns = self._began_ns, 0
        return (began_ns, self._ended_ns) if 0 < began_ns < self._ended_ns else None


def _is_main_thread_importing() -> bool:
    threading = sys.modules.get("threading")
    main = threading.main_thread().ident if threading is not None else None
    frame: FrameType | None = sys._current_frames().get(main) if main is not None else None
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTER:
            return True
        frame = frame.f_back
    return False
