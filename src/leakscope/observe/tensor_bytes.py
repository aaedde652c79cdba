"""What a tensor takes of malloc's memory beside its data: estimated, from measured figures."""

from __future__ import annotations

import sys
from ctypes import c_size_t
from typing import Any

TENSOR_BYTES = 367
"""A tensor beside its data and its Python object: what keeping `torch.zeros(n)` costs malloc
(383.8, 415.5, 1375.6 bytes for n of 1, 16, 256) less the data in blocks of 32 to 64 bytes, and the
16 that the collector has in front of the Python object."""

GRADIENT_BYTES = 190
"""More for a tensor that takes part in autograd (574.1 bytes with `requires_grad`, n of 1)."""

VIEW_BYTES = 160
"""More for a view (511.1 bytes, though it owns no storage)."""

_STORAGE_AT, _AUTOGRAD_AT = 16, 24
"""Where a TensorImpl has these pointers, behind its table of functions and its two counts."""


def tensor_bytes(tensor: Any) -> int:
    base = sys.modules["torch"]._C.TensorBase
    size = object.__sizeof__(tensor) + TENSOR_BYTES
    is_view = base._is_view(tensor)
    if base.requires_grad.__get__(tensor) or (not is_view and _is_known_to_autograd(tensor)):
        size += GRADIENT_BYTES
    return size + VIEW_BYTES * bool(is_view)


def _is_known_to_autograd(tensor: Any) -> bool:
    """True for what `torch.tensor(...)` makes, with or without `requires_grad`: 576 bytes for one
    number, where `torch.zeros(1)` takes 384. No method tells, but the pointer lies behind the one
    to the storage, whose value is known: where that is not found, nothing is read."""
    torch = sys.modules["torch"]
    try:
        address = torch._C.TensorBase._cdata.__get__(tensor)
        storage = torch._C.TensorBase.untyped_storage(tensor)._cdata
    except (RuntimeError, AttributeError):  # a wrapper, a sparse tensor
        return False
    if c_size_t.from_address(address + _STORAGE_AT).value != storage:
        return False
    return c_size_t.from_address(address + _AUTOGRAD_AT).value != 0
