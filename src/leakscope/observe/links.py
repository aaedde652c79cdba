"""Name one reference: how an object reaches another, in the words its programmer would use.

A chain is a list of objects, each held by the one before. Python's own parts in between (the
`__dict__` of an instance, the cell of a closure, the traceback of an exception) become one link
with what they stand for. Each reader looks at the chain from one place on and says how many
objects its link takes; the first one that knows the holder has the word.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections import deque
from contextlib import suppress
from threading import local as thread_local
from types import FrameType, TracebackType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from leakscope.model import Link
from leakscope.observe import links_in_code
from leakscope.observe.anatomy import (
    class_dict,
    class_file,
    class_name,
    class_qualname,
    dict_of,
    holds_namespace,
    is_exactly,
    is_kind,
    key_of,
    module_dict,
    plain,
    slots_of,
)
from leakscope.observe.links_in_code import Reader
from leakscope.observe.roots import Hop, global_hop, link_to

KEYS_SHOWN = 16
"""A dict of at most so many entries is a record whose keys mean something; above, a table."""

_KEYS_SEARCHED = 100_000
LONGEST_KEY = 40
_MODULE_TABLES = ("_modules", "_parameters", "_buffers")
_PIECES = (types.CellType, TracebackType, FrameType)


def links_of(chain: list[Any]) -> list[Link]:
    """The links that lead from the first object of a chain to its last."""
    links = []
    at = 0
    while at < len(chain) - 1:
        hop = _read(chain, at)
        at += hop.taken
        links.append(link_to(chain[at], hop))
    return links


def is_piece(obj: object) -> bool:
    """Is this one of Python's own parts, that no reader of a program has a name for?"""
    return is_exactly(obj, *_PIECES) or class_name(type(obj)).startswith("hamt")


def context_type() -> Any:
    return module_dict(sys.modules.get("_contextvars")).get("Context")


# ── readers ──


def _read(chain: list[Any], at: int) -> Hop:
    holder = chain[at]
    readers = [reader for kind, reader in _BY_TYPE if type(holder) is kind]
    readers += [reader for kind, reader in _BY_BASE if is_kind(holder, kind)]
    readers += [_context, _simple_queue, _attribute]
    readers += [reader for kind, reader in _CONTAINERS if is_kind(holder, kind)]
    for reader in readers:
        with suppress(Exception):  # an odd object is held in an odd way, which is said below
            hop = reader(chain, at)
            if hop is not None:
                return hop
    return Hop(1, "(inside)", "item")


def _attribute(chain: list[Any], at: int) -> Hop | None:
    """An attribute, in the instance's dict, inline, or in a slot."""
    holder, child = chain[at], chain[at + 1]
    namespace = dict_of(holder)
    if namespace is not None:
        if namespace is child and at + 2 < len(chain):
            return _named(chain, at, 2, key_of(namespace, chain[at + 2]))
        if namespace is child:
            return _named(chain, at, 1, "__dict__")
        if name := key_of(namespace, child):
            return _named(chain, at, 1, name)
    for name, value in slots_of(holder):
        if value is child:
            return _named(chain, at, 1, name)
    return None


def _named(chain: list[Any], at: int, taken: int, name: str) -> Hop | None:
    if not name:
        return None
    kind = type(chain[at])
    through = _see_through(chain, at, taken, name)
    if through is not None:
        return through
    return Hop(taken, f".{name}", "attribute", name, class_file(kind), class_qualname(kind))


def _see_through(chain: list[Any], at: int, taken: int, name: str) -> Hop | None:
    """Tables that stand for attributes or items: `model._modules["fc"]` is written `model.fc`."""
    table = at + taken
    if table + 1 >= len(chain) or not is_kind(chain[table], dict):
        return None
    holder = chain[at]
    if name == "data" and is_kind(holder, WeakKeyDictionary, WeakValueDictionary):
        return Hop(taken + 1, "[x]", "item")
    module = module_dict(sys.modules.get("torch.nn.modules.module")).get("Module")
    if module is None or name not in _MODULE_TABLES or not is_kind(holder, module):
        return None
    inner = key_of(chain[table], chain[table + 1])
    if not inner or inner.isdecimal():
        return Hop(taken + 1, "[x]", "item")
    kind = type(holder)
    return Hop(taken + 1, f".{inner}", "attribute", inner, class_file(kind), class_qualname(kind))


def _class(chain: list[Any], at: int) -> Hop | None:
    holder, child = chain[at], chain[at + 1]
    taken = 2 if type(child) is dict and at + 2 < len(chain) else 1
    if taken == 2 and not holds_namespace(holder, child):
        return None
    for name, value in class_dict(holder).items():
        if value is chain[at + taken] and type(name) is str:
            file, scope = class_file(holder), class_qualname(holder)
            return Hop(taken, f".{name}", "attribute", name, file, scope)
    return None


def _module(chain: list[Any], at: int) -> Hop | None:
    namespace = module_dict(chain[at])
    if chain[at + 1] is not namespace or at + 2 >= len(chain):
        return None
    return global_hop(namespace, chain[at + 2])._replace(taken=2)


def _dict(chain: list[Any], at: int) -> Hop | None:
    holder, child = chain[at], chain[at + 1]
    size = dict.__len__(holder)
    if size > _KEYS_SEARCHED:
        return Hop(1, "[x]", "item")
    for key, value in zip(dict.keys(holder), dict.values(holder), strict=False):
        if value is child:
            is_shown = size <= KEYS_SHOWN and type(key) is str and len(key) <= LONGEST_KEY
            return Hop(1, f'["{key}"]', "item", key) if is_shown else Hop(1, "[x]", "item")
    return Hop(1, "key", "item")


def _sequence(chain: list[Any], at: int) -> Hop | None:
    return Hop(1, "[x]", "item")


def _tuple(chain: list[Any], at: int) -> Hop | None:
    kind = type(chain[at])
    fields = class_dict(kind).get("_fields")
    if type(fields) is tuple:
        for index, name in enumerate(fields):
            if type(name) is str and tuple.__getitem__(chain[at], index) is chain[at + 1]:
                return Hop(1, f".{name}", "attribute", name, class_file(kind), class_qualname(kind))
    return Hop(1, "[x]", "item")


def _wrapped_list(chain: list[Any], at: int) -> Hop | None:
    """Built-in types that keep their items in a list of their own."""
    taken = 2 if type(chain[at + 1]) is list and at + 2 < len(chain) else 1
    return Hop(taken, "[x]", "item")


def _simple_queue(chain: list[Any], at: int) -> Hop | None:
    kind = module_dict(sys.modules.get("_queue")).get("SimpleQueue")
    return _wrapped_list(chain, at) if kind is not None and is_kind(chain[at], kind) else None


def _tee(chain: list[Any], at: int) -> Hop | None:
    """The lagging end of a tee keeps blocks of items, each block the next."""
    last = at + 1
    while last < len(chain) - 1 and class_name(type(chain[last])) == "_tee_dataobject":
        last += 1
    return Hop(last - at, "[x]", "item")


# ── contexts and threads ──


def _context(chain: list[Any], at: int) -> Hop | None:
    kind = context_type()
    if kind is None or type(chain[at]) is not kind:
        return None
    last = at + 1
    while last < len(chain) - 1 and is_piece(chain[last]):
        last += 1
    for variable, value in kind.items(chain[at]):
        if value is chain[last]:
            name = plain(variable.name)
            return Hop(last - at, f"context variable {name}", "item", name)
    return Hop(last - at, "context variable", "item")


def _thread_local(chain: list[Any], at: int) -> Hop | None:
    """A thread's own namespace, in a table of the namespaces of all threads."""
    last = at + 1
    while last < min(len(chain) - 1, at + 3) and type(chain[last]) is dict:
        last += 1
    name = key_of(chain[last - 1], chain[last]) if last > at + 1 else ""
    if not name:
        return None
    scope = class_qualname(type(chain[at]))
    via = f".{name} (of one thread)"
    return Hop(last - at, via, "attribute", name, class_file(type(chain[at])), scope)


_BY_TYPE: tuple[tuple[type, Reader], ...] = (
    *links_in_code.BY_TYPE,
    (itertools.cycle, _wrapped_list),
    (itertools._tee, _tee),  # type: ignore[attr-defined]
    (itertools._tee_dataobject, _tee),  # type: ignore[attr-defined]
)
_BY_BASE: tuple[tuple[type, Reader], ...] = (
    (type, _class),
    (types.ModuleType, _module),
    *links_in_code.BY_BASE,
    (thread_local, _thread_local),
)
_CONTAINERS: tuple[tuple[type, Reader], ...] = (
    (dict, _dict),
    (tuple, _tuple),
    (list, _sequence),
    (set, _sequence),
    (frozenset, _sequence),
    (deque, _sequence),
)
