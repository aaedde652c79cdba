"""The first link of a path: things of a program that need no holder to be found.

A module, a class, a cache, a live thread or a logger says by itself where it is; a variable of
a running function is as good.
"""

from __future__ import annotations

import functools
import sys
import threading
from os.path import basename, splitext
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from leakscope.model import Link
from leakscope.observe.anatomy import (
    attribute_of,
    class_file,
    class_name,
    class_qualname,
    code_of,
    describe,
    dict_of,
    is_kind,
    key_of,
    module_dict,
    module_file,
    plain,
)
from leakscope.observe.frames import Local
from leakscope.observe.registries import registry_link


class Hop(NamedTuple):
    """One link without the type of what it leads to, and how many objects of the chain it takes."""

    taken: int
    via: str
    kind: str = ""
    name: str = ""
    file: str = ""
    scope: str = ""
    line: int = 0


def link_to(obj: object, hop: Hop) -> Link:
    return Link(hop.via, describe(obj), hop.kind, hop.name, hop.file, hop.scope, hop.line)


def line_of(code: CodeType | None) -> int:
    return code.co_firstlineno if code is not None else 0


def root_link(obj: Any) -> Link | None:
    """The link of an object that names itself: a cache, a class, a module, a thread, a logger."""
    if is_kind(obj, functools._lru_cache_wrapper):
        return cache_link(obj)
    if is_kind(obj, type):
        return class_link(obj)
    if is_kind(obj, ModuleType):
        namespace = module_dict(obj)
        name = plain(namespace.get("__name__"))
        return module_link(name, namespace) if name else None
    if is_kind(obj, threading.Thread) and _is_alive(obj):
        name = plain(attribute_of(obj, "_name"))
        return Link(f"thread {name}", class_name(type(obj)), "thread", name)
    logger = module_dict(sys.modules.get("logging")).get("Logger")
    if logger is not None and is_kind(obj, logger):
        name = plain(attribute_of(obj, "name"))
        return Link(f"logger {name}", class_name(type(obj)), "global", name)
    return registry_link(obj)


def _is_alive(thread: object) -> bool:
    return any(thread is alive for alive in list(threading._active.values()))  # type: ignore[attr-defined]


def module_link(name: str, namespace: dict[str, Any]) -> Link:
    file = module_file(namespace)
    shown = splitext(basename(file))[0] if name == "__main__" and file else name
    return Link(f"module {shown}", "module", "module", name, file)


def global_hop(namespace: dict[str, Any], child: object) -> Hop:
    name = key_of(namespace, child)
    return Hop(1, f".{name}", "global", name, module_file(namespace))


def class_link(kind: type) -> Link:
    name = class_qualname(kind)
    return Link(f"class {name}", "class", "class", class_name(kind), class_file(kind), name)


def local_hop(local: Local) -> Hop:
    if local.is_free:
        via, kind = f"closure {local.name} of {local.function}()", "closure"
    else:
        via, kind = f"local {local.name} in {local.function}()", "local"
    return Hop(0, via, kind, local.name, local.file, local.function, local.line)


def cache_link(wrapper: Any) -> Link:
    """A `functools.lru_cache`, by the function it wraps."""
    code = code_of((dict_of(wrapper) or {}).get("__wrapped__"))
    if code is None:
        return Link("lru_cache", "lru_cache", "cache")
    outer, _, name = code.co_qualname.rpartition(".")
    scope = code.co_qualname if not outer or outer.endswith("<locals>") else outer
    via = f"lru_cache of {code.co_qualname}"
    return Link(via, "lru_cache", "cache", name, code.co_filename, scope, code.co_firstlineno)
