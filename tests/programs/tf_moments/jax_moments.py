"""Reads within JAX's transformations, its callbacks, and while computations are pending."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from forced import look, looking_from_a_thread, tell
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

TIMES = int(os.environ.get("TIMES", "20"))
kept = [jnp.full((16, 16), float(n)) for n in range(8)]
mesh = Mesh(np.array(jax.devices()), ("x",))


def numbers(*values):
    return [round(float(jnp.sum(value)), 4) for value in values]


def traced(i):
    @jax.jit
    def step(x):
        look("jit")
        y = jnp.tanh(x) * i
        look("jit, later")
        return y.sum()

    @jax.checkpoint
    def block(x):
        look("checkpoint")
        return jnp.sin(x @ x)

    def body(carry, x):
        look("scan")
        return carry + x.sum(), x * 2

    slope = jax.grad(lambda x: (look("grad"), block(x).sum())[1])(kept[1])
    mapped = jax.vmap(lambda row: (look("vmap"), row.sum() * i)[1])(kept[2])
    total, doubled = jax.lax.scan(body, 0.0, kept[3])
    chosen = jax.lax.cond(i % 2 == 0, lambda x: (look("cond"), x + 1)[1], lambda x: x - 1, kept[4])
    return numbers(step(kept[0]), slope, mapped, total, doubled, chosen)


@jax.custom_vjp
def clipped(x):
    look("custom_vjp")
    return x * x


clipped.defvjp(
    lambda x: (look("custom_vjp, forward"), (x * x, x))[1],
    lambda x, upstream: (look("custom_vjp, backward"), (2 * x * jnp.clip(upstream, -1, 1),))[1],
)


def custom(i):
    linear = jax.linearize(lambda x: (look("linearize"), jnp.sin(x))[1], kept[1])[1]
    return numbers(jax.grad(lambda x: clipped(x).sum() * i)(kept[1]), linear(kept[2]))


def callbacks(i):
    def pure(x):
        look("pure_callback")
        return np.asarray(x) * 2

    @jax.jit
    def step(x):
        y = jax.pure_callback(pure, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        jax.debug.callback(lambda v: look("debug.callback"), y)
        z = jax.experimental.io_callback(pure, jax.ShapeDtypeStruct(x.shape, x.dtype), y)
        return jnp.tanh(z).sum() + i

    first = step(kept[5])
    look("pending callbacks")
    jax.effects_barrier()
    return numbers(first)


def pending(i):
    @partial(jax.jit, donate_argnums=0)
    def slow(x):
        return jax.lax.fori_loop(0, 40, lambda _, y: jnp.tanh(y @ y), x)

    x = jnp.full((200, 200), 0.01 * (i + 1))
    given = x + 1
    held = given
    result = slow(given)
    look("pending, argument donated")
    assert held.is_deleted()
    return numbers(result)


def parallel(i):
    spread = jax.device_put(kept[6] * i, NamedSharding(mesh, Spec("x")))
    copied = jax.device_put(kept[6], NamedSharding(mesh, Spec()))
    look("sharded")

    @jax.jit
    def step(a, b):
        look("jit, sharded")
        return a @ b

    own = jax.shard_map(
        lambda a: (look("shard_map"), a * jax.lax.axis_index("x"))[1],
        mesh=mesh,
        in_specs=Spec("x"),
        out_specs=Spec("x"),
    )
    each = jax.pmap(lambda a: (look("pmap"), jax.lax.psum(a, "d"))[1], axis_name="d")
    return numbers(step(spread, copied), own(spread), each(kept[7].reshape(4, 4, 16)))


def strict(i):
    with jax.checking_leaks(), jax.transfer_guard("disallow"), jax.debug_nans(True):
        look("checking_leaks")
        result = jax.jit(lambda x: (look("jit, checking_leaks"), x * x)[1])(kept[1])
        look("after, checking_leaks")
    with jax.disable_jit():
        look("disable_jit")
        other = jax.jit(lambda x: (look("not compiled"), x + x)[1])(kept[1])
    return numbers(result, other), i


def beside(i):
    total = 0.0
    with looking_from_a_thread("thread"):
        for n in range(5):
            step = jax.jit(lambda x, n=n: jnp.sin(x * n + i).sum())
            total += float(step(kept[3]))
            x = jnp.ones((100, 100)) * n
            total += float(jax.jit(lambda x: (x @ x).sum(), donate_argnums=0)(x))
            del x
    return round(total, 2)


for moment in (traced, custom, callbacks, pending, parallel, strict, beside):
    for i in range(TIMES):
        print(moment.__name__, i, moment(i), flush=True)
tell()
