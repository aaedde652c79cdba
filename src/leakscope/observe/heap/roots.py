"""Where paths begin: modules, local variables of running functions, threads.

Local variables are invisible to the collector: they are read from the frames, by
`observe.frames`, which leaves nothing behind.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any, NamedTuple

from leakscope.observe.anatomy import (
    attribute_of,
    is_kind,
    module_dict,
    module_file,
    plain,
)
from leakscope.observe.frames import describe_local, locals_of, running_frames
from leakscope.record.format import storable
from leakscope.record.snapshot_file import LocalRoot, ModuleRoot, OtherRoot


class Roots(NamedTuple):
    """Addresses with names; `values` holds what the collector may not track, for the walk only."""

    modules: tuple[ModuleRoot, ...]
    locals: tuple[LocalRoot, ...]
    others: tuple[OtherRoot, ...]
    values: list[Any]


def find_roots(thread_dicts: list[Any]) -> Roots:
    """Every root of this moment. Drop the result as soon as the walk is done."""
    values: list[Any] = []
    local_roots = tuple(_locals(values))
    values.extend(thread_dicts)
    others = [OtherRoot(id(one), "thread-local storage", "thread") for one in thread_dicts]
    return Roots(_modules(), local_roots, (*others, *_threads()), values)


def _modules() -> tuple[ModuleRoot, ...]:
    found: dict[int, ModuleRoot] = {}
    for name, module in list(sys.modules.items()):
        namespace = module_dict(module)
        if type(name) is str and name != "__mp_main__" and namespace:
            file = storable(module_file(namespace))
            found.setdefault(id(namespace), ModuleRoot(id(namespace), storable(name), file))
    for running in running_frames():
        # A module that is no longer in sys.modules, or was never there: code run by `exec`.
        namespace = running.frame.f_globals
        if type(namespace) is dict and id(namespace) not in found:
            name, file = plain(namespace.get("__name__")), module_file(namespace)
            found[id(namespace)] = ModuleRoot(id(namespace), storable(name), storable(file))
    return tuple(found.values())


def _locals(values: list[Any]) -> list[LocalRoot]:
    found = []
    for running in running_frames():
        code = running.frame.f_code
        if not code.co_flags & 0x01 and running.frame.f_locals is running.frame.f_globals:
            continue  # the body of a module: its variables are globals
        with locals_of(running.frame) as names, suppress(RuntimeError):
            for name, value in names.items():
                if not name.isidentifier():
                    continue  # the compiler's own, such as the iterator of a comprehension
                values.append(value)
                local = describe_local(running, name)
                found.append(
                    LocalRoot(
                        id(value),
                        storable(name),
                        storable(local.function),
                        storable(local.file),
                        local.line,
                        storable(local.thread),
                        local.depth,
                        local.is_argument,
                        local.is_free,
                    )
                )
    return found


def _threads() -> list[OtherRoot]:
    active = list(threading._active.values())  # type: ignore[attr-defined]
    return [
        OtherRoot(id(one), storable(f"thread {name}"), "thread", storable(name))
        for one in active
        if is_kind(one, threading.Thread) and (name := plain(attribute_of(one, "_name")))
    ]
