"""Tables that a framework keeps for as long as the process lives, by the names people know them by.

A path that meets one of them is at its root: whatever else leads there, this is what keeps it.
"""

from __future__ import annotations

import sys
from typing import Any

from leakscope.model import Link
from leakscope.observe.anatomy import class_file, class_name, class_qualname, module_dict

_OPS = "tensorflow.python.framework.ops"
_KERAS_STATE = "keras.src.backend.common.global_state"
REGISTRY = "registry"
_CONTAINERS = ("_registry", "_py_funcs_used_in_graph")


def registry_link(obj: Any) -> Link | None:
    """The link of an object that is such a table."""
    for name, table in _tables():
        if obj is table:
            return Link(name, class_name(type(obj)), REGISTRY)
    return None


def registry_path(it: object) -> tuple[Link, ...]:
    """The whole path, where the thing that grows is the container in such a table: no search over
    the heap is needed, which takes a second where TensorFlow is."""
    for name, table in _tables():
        for attribute in _CONTAINERS:
            if getattr(table, attribute, None) is it:
                kind = type(table)
                own = Link(
                    f".{attribute}",
                    class_name(type(it)),
                    "attribute",
                    attribute,
                    class_file(kind),
                    class_qualname(kind),
                )
                return Link(name, class_name(kind), REGISTRY), own
    return ()


def _tables() -> list[tuple[str, Any]]:
    ops = module_dict(sys.modules.get(_OPS))
    keras = module_dict(sys.modules.get(_KERAS_STATE))
    found = [
        ("TensorFlow's gradient registry", ops.get("gradient_registry")),
        ("TensorFlow's default graph", _default_graph(ops)),
        ("Keras' global state", keras.get("GLOBAL_STATE_TRACKER")),
    ]
    return [(name, table) for name, table in found if table is not None]


def _default_graph(ops: dict[str, Any]) -> Any:
    """Of the main thread: the one that functions and datasets leave their callbacks in."""
    stack = ops.get("_default_graph_stack")
    # A thread's own attributes: asked for by name, for they lie in no dict of the object.
    return getattr(stack, "_global_default_graph", None) if stack is not None else None
