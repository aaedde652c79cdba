"""What the program's own classes, modules and running functions hold directly.

A cheap way to things the collector does not track: there are few of these holders, and what a
program piles up lies under a name of its own more often than not.
"""

from __future__ import annotations

import gc
import sys
from itertools import compress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from leakscope.observe.anatomy import (
    class_dict,
    class_file,
    class_module,
    is_of_the_user,
    module_dict,
    module_file,
    mro_of,
)
from leakscope.observe.frames import locals_of, running_frames

_MOST_INSTANCES = 20_000
_MOST_FRAMES = 64
_PLAIN = frozenset(
    map(
        id,
        (
            *(dict, list, tuple, set, frozenset, type),
            *(FunctionType, BuiltinFunctionType, MethodType, ModuleType),
        ),
    )
)
"""Types without attributes, or with such as are looked at elsewhere; by id, see
`has_odd_metaclass`."""


def own_classes() -> list[type]:
    """The classes that the program's own files define."""
    names = {name for name, _ in _own_modules()}
    kinds = _classes()
    return list(compress(kinds, map(names.__contains__, map(class_module, kinds))))


def own_locals() -> list[Any]:
    """Values of the variables of the program's own running functions.

    To be read before everything is listed: up to Python 3.12 a frame's variables are read from a
    dict that it keeps, which is emptied afterwards only if nobody else has it, and a list of all
    objects would have it."""
    found: list[Any] = []
    for running in running_frames()[:_MOST_FRAMES]:
        if is_of_the_user(running.frame.f_code.co_filename):
            with locals_of(running.frame) as names:
                found.extend(names.values())
    return found


def has_odd_metaclass() -> bool:
    """Do classes of the program answer for their own hash or equality? Every set of classes would
    run its code then."""
    stack: list[type] = [type]
    while stack:
        kind = stack.pop()
        stack.extend(type.__subclasses__(kind))
        behind = [
            class_dict(base) for base in mro_of(kind) if base is not type and base is not object
        ]
        is_odd = any("__hash__" in names or "__eq__" in names for names in behind)
        if is_odd and is_of_the_user(class_file(kind)):
            return True
    return False


def held_by_the_program(instances: list[Any], local_values: tuple[Any, ...]) -> list[Any]:
    """Values of attributes, globals and locals of the program's own, what dicts among them hold,
    and the attributes of objects of others' classes among them: a `SimpleNamespace` to which
    `setattr` gives one array after the other has a dict that nobody tracks. No element of a list
    is visited."""
    found = gc.get_referents(*instances[:_MOST_INSTANCES])
    for _, namespace in _own_modules():
        found.extend(namespace.values())
    found.extend(local_values)
    dicts = [one for one in found if type(one) is dict and gc.is_tracked(one)]
    found += gc.get_referents(*dicts)
    others = [one for one in found if id(type(one)) not in _PLAIN and gc.is_tracked(one)]
    return found + gc.get_referents(*others[:_MOST_INSTANCES])


def _own_modules() -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, namespace)
        for name, module in list(sys.modules.items())
        if is_of_the_user(module_file(namespace := module_dict(module)))
    ]


def _classes() -> list[type]:
    classes: list[type] = []
    stack: list[type] = [object]
    seen: set[int] = set()
    while stack:
        kind = stack.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            classes.append(kind)
            stack.extend(type.__subclasses__(kind))
    return classes
