"""The walk over all objects: in C where the extension is installed, otherwise in Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakscope.observe.heap.twin import Walked

KIND: Literal["c", "python"]
"""Which of the two it is."""

_chosen: Any
try:
    _chosen = import_module("leakscope.observe.heap._walker")
    KIND = "c"
except (ImportError, RuntimeError):  # not built, or a Python without the GIL
    _chosen = import_module("leakscope.observe.heap.twin")
    KIND = "python"

walk: Callable[..., Walked] = _chosen.walk
thread_dicts: Callable[[], list[Any]] = _chosen.thread_dicts
check_ndarray: Callable[[Any, int, int, Any, Any], bool] = _chosen.check_ndarray
