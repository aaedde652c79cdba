"""Objects of TensorFlow and JAX whose memory lies outside of Python: how much, if they can say.

A tensor or an array tells its bytes and where they are. A traced graph, a tape, an iterator or a
compiled function does not, nor does a Keras model, which leads to all of Keras: those are counted,
and called opaque. Only what the frameworks' own
classes offer is asked, by type and without importing anything.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from leakscope.observe.anatomy import class_module, class_name, mro_of

_TENSORS = frozenset({("tensorflow.python.framework.ops", "EagerTensor")})
_ARRAYS = frozenset({("jaxlib._jax", "ArrayImpl"), ("jaxlib.xla_extension", "ArrayImpl")})
_OPAQUE = frozenset(
    {
        ("tensorflow.python.framework.func_graph", "FuncGraph"),
        ("tensorflow.python.eager.backprop", "GradientTape"),
        ("keras.src.models.model", "Model"),
        ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator"),
        ("jaxlib._jax", "PjitFunction"),
        ("jaxlib.xla_extension", "PjitFunction"),
        ("jaxlib._jax", "LoadedExecutable"),
    }
)
_OPS, _JAX = "tensorflow.python.framework.ops", "jax._src.core"
_RESOURCE = 20
"""Number of TensorFlow's type `resource`: the handle of a variable."""


def is_present() -> bool:
    """Is one of the two loaded? Where none is, nothing is to be weighed or searched differently."""
    return _OPS in sys.modules or _JAX in sys.modules


class Memory(NamedTuple):
    """A block outside of Python."""

    address: int
    bytes: int


def is_tensor_type(kind: type) -> bool:
    """Does an object of this class own memory of a framework and tell how much?"""
    return _is_one_of(kind, _TENSORS) or _is_one_of(kind, _ARRAYS)


def is_opaque_type(kind: type) -> bool:
    """Does it own memory that nobody can ask for?"""
    return _is_one_of(kind, _OPAQUE)


def memory_of(tensor: Any) -> Memory | None:
    """Where its bytes are; None where it owns none that can be told."""
    if _is_one_of(type(tensor), _ARRAYS):
        if tensor.is_deleted():
            return None
        return Memory(_address_of_array(tensor) or id(tensor), tensor.nbytes)
    if tensor.dtype.as_datatype_enum == _RESOURCE:
        size = _bytes_of_variable(tensor)
        return Memory(id(tensor), size) if size else None
    size = tensor._num_elements() * tensor.dtype.size
    if not size or not tensor.device.endswith("CPU:0"):
        return Memory(id(tensor), size) if size else None
    return Memory(_address_of_tensor(tensor), size)


def describe_tensor(tensor: Any) -> str:
    """`EagerTensor [64, 512] float32`."""
    dtype = tensor.dtype
    name = getattr(dtype, "name", None) or str(dtype)
    return f"{class_name(type(tensor))} {list(tensor.shape)} {name}"


def _address_of_array(array: Any) -> int:
    try:
        return int(array.unsafe_buffer_pointer())
    except (ValueError, RuntimeError):  # spread over several devices
        return 0


def _address_of_tensor(tensor: Any) -> int:
    """Of the bytes themselves: a reshaped tensor and a variable share them."""
    numpy = sys.modules["numpy"]
    return int(numpy.frombuffer(memoryview(tensor), numpy.uint8).ctypes.data)


def _bytes_of_variable(handle: Any) -> int:
    """What the variable behind a handle holds, by its shape and type."""
    data = getattr(handle, "_handle_data", None)
    shapes = data.shape_and_type if data is not None and data.is_set else ()
    dtypes = sys.modules["tensorflow.python.framework.dtypes"]
    total = 0
    for one in shapes:
        count = 1
        for dimension in one.shape.dim:
            count *= max(dimension.size, 0)
        total += 0 if one.shape.unknown_rank else count * dtypes.as_dtype(one.dtype).size
    return total


def _is_one_of(kind: type, wanted: frozenset[tuple[str, str]]) -> bool:
    return any((class_module(base), class_name(base)) in wanted for base in mro_of(kind))
