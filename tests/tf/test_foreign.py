"""What tensors, variables and arrays of other frameworks own, by address and size."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow", reason="make test-tf has its own environment")
jnp = pytest.importorskip("jax.numpy", reason="make test-tf has its own environment")

from leakscope.observe.foreign import is_opaque_type, is_tensor_type, memory_of  # noqa: E402


def _bytes(tensor: Any) -> int:
    memory = memory_of(tensor)
    assert memory is not None
    return memory.bytes


def test_a_tensor_and_its_reshaped_self_are_one_block() -> None:
    tensor = tf.random.normal((64, 32))
    same = memory_of(tf.reshape(tensor, (32, 64)))
    assert memory_of(tensor) == same
    assert _bytes(tensor) == 64 * 32 * 4


def test_a_deleted_array_weighs_nothing() -> None:
    array = jnp.ones((100, 10))
    assert _bytes(array) == 4000
    array.delete()
    assert memory_of(array) is None


def test_a_kept_tape_and_a_jitted_function_cannot_be_measured() -> None:
    import jax

    with tf.GradientTape(persistent=True) as tape:
        tf.square(tf.Variable(2.0))
    assert is_opaque_type(type(tape))
    assert is_opaque_type(type(jax.jit(lambda x: x)))
    assert is_tensor_type(type(jnp.ones(2)))
