"""The walk over all objects: in C where the extension is installed, otherwise in Python."""

from __future__ import annotations

from typing import Literal

KIND: Literal["c", "python"]
"""Which of the two it is."""

try:
    from leakscope.observe.heap._walker import check_ndarray, thread_dicts, walk

    KIND = "c"
except (ImportError, RuntimeError):  # not built, or a Python without the GIL
    from leakscope.observe.heap.twin import check_ndarray, thread_dicts, walk

    KIND = "python"

__all__ = ["KIND", "check_ndarray", "thread_dicts", "walk"]
