"""What TensorFlow and JAX add to a snapshot: buffers, records of tapes, executables, lines."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow", reason="make test-tf has its own environment")
jax = pytest.importorskip("jax", reason="make test-tf has its own environment")
import jax.numpy as jnp  # noqa: E402
import keras  # noqa: E402

from leakscope.frameworks.jax_edges import JaxEdges  # noqa: E402
from leakscope.frameworks.tensorflow_edges import TensorFlowEdges  # noqa: E402
from leakscope.model import Frame  # noqa: E402
from leakscope.observe.heap.edges import Extras  # noqa: E402
from leakscope.record.snapshot_file import EdgeRole, ExtraNode  # noqa: E402
from running import environment  # noqa: E402

_HERE = str(Path(__file__))


def _read(provider: TensorFlowEdges | JaxEdges, *found: Any) -> Extras:
    extras = Extras()
    provider.read(list(found), extras)
    return extras


def _owned_by(extras: Extras, one: object) -> list[ExtraNode]:
    """The nodes that are the memory of an object."""
    targets = (edge.target for edge in extras.edges if edge.source == id(one))
    return [extras.nodes[target] for target in targets if target in extras.nodes]


def _leads_to(extras: Extras, one: object, role: EdgeRole) -> set[int]:
    return {edge.target for edge in extras.edges if edge.source == id(one) and edge.role == role}


# ── TensorFlow ──


def test_a_reshaped_tensor_and_a_slice_share_one_buffer() -> None:
    tensor = tf.random.normal((64, 32))
    parts = tf.reshape(tensor, (32, 64)), tensor[16:32]
    extras = _read(TensorFlowEdges(), tensor, *parts)
    assert [node.bytes for node in extras.nodes.values()] == [64 * 32 * 4]
    (node,) = _owned_by(extras, tensor)
    assert _owned_by(extras, parts[0]) == _owned_by(extras, parts[1]) == [node]
    assert (node.part, node.device) == ("tensors", "")
    assert extras.described[id(parts[1])] == "EagerTensor [16, 32] float32"


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex128", "int64", "qint8"])
def test_a_tensor_of_any_type_has_its_bytes(dtype: str) -> None:
    tensor = tf.cast(tf.ones((6, 8)), tf.as_dtype(dtype))
    (node,) = _owned_by(_read(TensorFlowEdges(), tensor), tensor)
    assert node.bytes == 48 * tensor.dtype.size


def test_a_variable_has_the_bytes_of_its_shape() -> None:
    handle = tf.Variable(tf.zeros((128, 256)))._handle
    (node,) = _owned_by(_read(TensorFlowEdges(), handle), handle)
    assert (node.bytes, node.part) == (128 * 256 * 4, "tensors")


def test_what_does_not_tell_its_size_is_counted() -> None:
    data = tf.data.Dataset.range(4)
    iterator = iter(data)
    graph = tf.function(lambda x: x * 2).get_concrete_function(tf.ones(2)).graph
    strings = tf.constant(["some", "words"])
    things = graph, strings, iterator._iterator_resource, data._variant_tensor
    extras = _read(TensorFlowEdges(), *things)
    kinds = [node.type for thing in things for node in _owned_by(extras, thing)]
    assert kinds == ["FuncGraph", "strings", "IteratorResource", "variant"]
    assert {(node.bytes, node.part) for node in extras.nodes.values()} == {(0, "opaque")}


def test_a_graph_has_the_lines_that_were_noted() -> None:
    graph = tf.function(lambda x: x * 2).get_concrete_function(tf.ones(2)).graph
    lines = {id(graph): (Frame("train.py", 7, "main"),)}
    extras = _read(TensorFlowEdges(lambda one: lines.get(id(one), ())), graph)
    assert extras.sites == {id(graph): (("train.py", 7, "main"),)}


def test_a_kept_tape_leads_to_what_it_recorded_and_works_as_before() -> None:
    """Breaks when a tape stays active after it was asked, or when its records are not found."""
    weights = tf.Variable(tf.ones((4, 4)))
    tapes, recorded, others = [], [], []
    for number in range(30):
        x = tf.ones((2, 4)) * float(number)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.tanh(x @ weights)
            z = tf.reduce_sum(y * y)
        tapes.append(tape)
        recorded.append((x, y, z))
        others.append(tf.sin(y))
    tensors = [*others, *(tensor for some in recorded for tensor in some)]
    extras = _read(TensorFlowEdges(), *tapes, *tensors)
    for tape, some in zip(tapes, recorded, strict=True):
        assert _leads_to(extras, tape, EdgeRole.SAVED) == set(map(id, some))
        assert _leads_to(extras, tape, EdgeRole.VARIABLE) == {id(weights)}
    assert not extras.skipped
    after = tf.sin(recorded[3][1])
    assert tapes[3].gradient(after, weights) is None
    assert tapes[3].gradient(recorded[3][2], weights) is not None


def test_tapes_in_another_order_are_found_too() -> None:
    pairs = []
    for number in range(40):
        x = tf.constant(float(number))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        pairs.append((tape, x, y))
    tapes = [tape for tape, _, _ in reversed(pairs)]
    extras = _read(TensorFlowEdges(), *tapes, *(one for pair in pairs for one in pair[1:]))
    for tape, x, y in pairs:
        assert _leads_to(extras, tape, EdgeRole.SAVED) == {id(x), id(y)}


def test_a_tape_that_records_is_left_alone() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as ended:
        ended.watch(x)
        x * x
    with tf.GradientTape() as tape:
        tape.watch(x)
        extras = _read(TensorFlowEdges(), tape, ended, x)
        y = x * x
    assert not _leads_to(extras, tape, EdgeRole.SAVED)
    assert extras.skipped == {"tensors recorded by tapes": "this thread is recording operations"}
    assert float(tape.gradient(y, x)) == 6.0


def test_a_tensor_that_is_still_being_made_is_not_asked() -> None:
    """Breaks, by the end of this process, when a tensor without its native half is asked."""
    tensors = [tf.ones(4) * float(number) for number in range(4)]
    kind: Any = type(tensors[0])
    half_made = kind.__new__(kind)
    extras = _read(TensorFlowEdges(), half_made, *tensors)
    assert not _owned_by(extras, half_made)
    assert len(extras.nodes) == 4


def test_tensors_are_not_asked_while_a_thread_runs_operations_later() -> None:
    from tensorflow.python.eager import executor

    tensor, later = tf.ones(4), executor.new_executor(enable_async=True)
    extras = _read(TensorFlowEdges(), tensor, later)
    assert not extras.nodes
    assert "asynchronously" in extras.skipped["tensors of TensorFlow"]
    assert _read(TensorFlowEdges(), tensor, executor.new_executor(enable_async=False)).nodes


def test_an_executor_that_was_found_within_its_end_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks, by the end of this process, when its native half is asked after it was freed."""
    from tensorflow.python.eager import executor

    found: list[Any] = []
    monkeypatch.setattr(executor.Executor, "wait", lambda self: found.append(self))  # noqa: PLW0108
    executor.new_executor(enable_async=True)
    assert len(found) == 1
    assert _read(TensorFlowEdges(), tf.ones(4), *found).nodes


def test_objects_that_a_collection_has_cleared_can_be_asked() -> None:
    """Breaks, by the end of this process, when a question needs what `tp_clear` takes away. A
    collection in another thread can be in the middle of it when a snapshot is taken."""
    variable, iterator = tf.Variable(tf.zeros(4)), iter(tf.data.Dataset.range(3))
    with tf.GradientTape(persistent=True) as tape:
        variable * 2.0
    jitted = jax.jit(lambda x: x * 2)
    tensors = tf.ones((4, 4)), variable._handle, iterator._iterator_resource, tf.constant(["a"])
    graph = tf.function(lambda x: x * 2).get_concrete_function(tf.ones(2)).graph
    others = tape, graph
    arrays = jitted, jnp.ones(4)
    for one in (*tensors, *others, *arrays):
        _clear(one)
    whole = [tf.ones(2) * float(number) for number in range(4)]
    assert len(_read(TensorFlowEdges(), *tensors, *others, *whole).nodes) >= len(whole)
    assert len(_read(JaxEdges(), *arrays).nodes) == 1


def _clear(one: object) -> None:
    """Call `tp_clear`, as the collector does."""
    slot = ctypes.c_void_p.from_address(id(type(one)) + 24 * 8).value
    assert slot
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(slot)(one)


def test_registries_have_the_names_that_people_know() -> None:
    from tensorflow.python.framework import ops

    tf.compat.v1.get_default_graph()
    words = set(_read(TensorFlowEdges()).described.values())
    assert {"TensorFlow's gradient registry", "TensorFlow's default graph"} <= words
    assert ops.gradient_registry is not None


def test_functions_of_the_default_graph_have_the_lines_that_were_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from leakscope.frameworks import tensorflow_edges
    from leakscope.observe.origins import Places

    def rows() -> Iterator[int]:
        yield 1

    keras.backend.clear_session()
    for _ in range(4):
        list(tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64)))
    places = Places()
    for _ in range(6):
        places.note("_py_funcs_used_in_graph")
    monkeypatch.setattr(tensorflow_edges, "places", places)
    sites = _read(TensorFlowEdges()).sites
    callbacks = tf.compat.v1.get_default_graph()._py_funcs_used_in_graph
    assert len(callbacks) >= 4
    assert set(sites) == set(map(id, callbacks))
    assert {stack[0][0] for stack in sites.values()} == {_HERE}


def test_nothing_is_kept() -> None:
    tensor, array = tf.ones(8), jnp.ones(8)
    alive = weakref.ref(tensor), weakref.ref(array)
    providers = TensorFlowEdges(), JaxEdges()
    results = _read(providers[0], tensor), _read(providers[1], array)
    del tensor, array
    gc.collect()
    assert [one() for one in alive] == [None, None]
    assert all(result.nodes for result in results)


# ── JAX ──


def test_an_array_has_its_buffer_and_the_line_that_made_it() -> None:
    array = jnp.ones((100, 10))
    extras = _read(JaxEdges(), array)
    (node,) = _owned_by(extras, array)
    assert (node.bytes, node.part, node.device) == (4000, "tensors", "")
    assert node.address == array.unsafe_buffer_pointer()
    assert extras.described[id(array)] == "ArrayImpl [100, 10] float32"
    file, line, function = extras.sites[id(array)][0]
    assert (file, function) == (_HERE, "test_an_array_has_its_buffer_and_the_line_that_made_it")
    assert "jnp.ones((100, 10))" in Path(_HERE).read_text().splitlines()[line - 1]


def test_a_deleted_array_owns_nothing() -> None:
    array = jnp.ones((100, 10))
    array.delete()
    extras = _read(JaxEdges(), array)
    assert not extras.nodes
    assert not extras.skipped


def test_a_jitted_function_leads_to_its_executables() -> None:
    """Breaks when JAX's caches list what they hold in another order."""

    def scaled(x: Any, factor: float) -> Any:
        return jnp.tanh(x) * factor

    function = jax.jit(scaled, static_argnums=1)
    for number in range(5):
        function(jnp.ones(16), 0.5 + number)
    kinds = JaxEdges().wanted()
    found = [one for one in gc.get_objects() if type(one) in kinds]
    extras = _read(JaxEdges(), *found)
    own = _leads_to(extras, scaled, EdgeRole.ITEM)
    assert own
    assert own == _leads_to(extras, function, EdgeRole.ITEM)
    reached = _reached_from([scaled], extras)
    names = [type(one).__name__ for one in reached]
    assert names.count("LoadedExecutable") == 5
    executables = [one for one in reached if type(one).__name__ == "LoadedExecutable"]
    extras = _read(JaxEdges(), *executables)
    assert {node.type for node in extras.nodes.values()} == {"LoadedExecutable"}
    assert {extras.sites[id(one)][0][0] for one in executables} == {_HERE}


def _reached_from(starts: Sequence[Any], extras: Extras) -> list[Any]:
    """What these lead to through cached results, one object after the other."""
    cached: dict[int, list[int]] = {}
    for edge in extras.edges:
        if edge.name == "cached":
            cached.setdefault(edge.source, []).append(edge.target)
    objects = {id(one): one for one in gc.get_objects()}
    wanted = ("jax._src", "jaxlib._jax")
    found, seen = list(starts), set(map(id, starts))
    for one in found:
        targets = [objects[address] for address in cached.get(id(one), ()) if address in objects]
        if one is not starts[0]:
            targets += gc.get_referents(one)
        for target in targets:
            kind = type(target)
            is_part = kind in (tuple, list, dict) or str(kind.__module__).startswith(wanted)
            if id(target) not in seen and is_part and kind.__name__ != "WeakrefLRUCache":
                seen.add(id(target))
                found.append(target)
    return found


def test_an_array_on_several_devices_has_its_bytes_on_each() -> None:
    program = (
        "import os\n"
        "os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\n"
        "import jax, numpy as np\n"
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec\n"
        "from leakscope.frameworks.jax_edges import JaxEdges\n"
        "from leakscope.observe.heap.edges import Extras\n"
        "mesh = Mesh(np.array(jax.devices()), ('x',))\n"
        "for spec in (Spec('x'), Spec()):\n"
        "    array = jax.device_put(np.ones((8, 8), 'float32'), NamedSharding(mesh, spec))\n"
        "    extras = Extras()\n"
        "    JaxEdges().read([array], extras)\n"
        "    print(sorted(node.bytes for node in extras.nodes.values()), extras.skipped)\n"
    )
    assert _python(program) == "[64, 64, 64, 64] {}\n[256, 256, 256, 256] {}\n"


def test_nothing_is_wanted_where_neither_is_loaded() -> None:
    program = (
        "import sys\n"
        "from leakscope.frameworks.jax_edges import JaxEdges\n"
        "from leakscope.frameworks.tensorflow_edges import TensorFlowEdges\n"
        "print(JaxEdges().wanted(), TensorFlowEdges().wanted(), TensorFlowEdges().why_not_now())\n"
        "print({'jax', 'tensorflow', 'ctypes'} & set(sys.modules))\n"
    )
    assert _python(program) == "() () \nset()\n"


def _python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment({"JAX_PLATFORMS": "cpu"}),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ── a whole snapshot ──


def test_growth_of_kept_tapes_and_executables_has_the_path_of_the_program(tmp_path: Path) -> None:
    growth = pytest.importorskip("leakscope.heap.growth")
    groups = pytest.importorskip("leakscope.heap.groups")
    snapshot = pytest.importorskip("leakscope.observe.heap.snapshot")
    kept_tapes: list[Any] = []
    scaled = jax.jit(lambda x, factor: jnp.tanh(x) * factor, static_argnums=1)
    files = []
    for number in range(1, 4):
        for step in range(20):
            x = tf.ones((64, 64)) * float(step)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                tf.reduce_sum(tf.tanh(x) ** 2)
            kept_tapes.append(tape)
            scaled(jnp.ones(16), number + step / 100)
        del x, tape
        files.append(tmp_path / f"{number}.heap")
        moment = snapshot.Moment("main", number, 20 * number, "call")
        snapshot.take_snapshot(str(files[-1]), moment, (TensorFlowEdges(), JaxEdges()))
    read = [groups.read_groups(file) for file in files]
    found = growth.find_growth(read, [20, 40, 60]).growing
    names = {_names(one) for one in found[:2]}
    assert any("kept_tapes" in " ".join(words) for words in names), names
    assert any("scaled" in " ".join(words) for words in names), names
    tapes = next(one for one in found if "kept_tapes" in " ".join(_names(one)))
    assert [count for _, count in tapes.counts] == [20, 40, 60]
    assert tapes.parts["tensors"] >= 40 * 64 * 64 * 4


def _names(growing: Any) -> tuple[str, ...]:
    return tuple(growing.groups.label(group)[1] for group in growing.path)
