"""The folder is the registry: every module of a folder yields one object of the expected type.

Other packages add theirs through an entry-point group of the same name. One that cannot be had is
told as a gap, and everything else goes on.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from leakscope.model import Gap

Kind = TypeVar("Kind")
Answer = TypeVar("Answer")


def load(folder: str, group: str, kind: type[Kind]) -> tuple[tuple[Kind, ...], tuple[Gap, ...]]:
    """All objects of `kind`, those of the folder first, in the order of their modules' names."""
    gaps: list[Gap] = []
    modules = pkgutil.iter_modules(importlib.import_module(folder).__path__)
    found = [_only(importlib.import_module(f"{folder}.{one.name}"), kind) for one in modules]
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            found.append(_expected(entry.load(), kind, entry))
        except Exception as error:  # noqa: BLE001 - somebody else's package may fail in any way
            why = f"{_origin(entry)} could not be loaded: {type(error).__name__}: {error}"
            gaps.append(Gap(f"plugin {entry.name}", why))
    return tuple(found), tuple(gaps)


def guarded(call: Callable[[], Answer], name: str, gaps: list[Gap]) -> Answer | None:
    """What a plugin answers; None, and a gap, if it fails instead."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - see above
        gaps.append(Gap(f"plugin {name}", f"it failed: {type(error).__name__}: {error}"))
        return None


def _only(module: object, kind: type[Kind]) -> Kind:
    found = [value for value in vars(module).values() if isinstance(value, kind)]
    if len(found) != 1:
        raise TypeError(f"{module} has {len(found)} objects of type {kind.__name__}, not one")
    return found[0]


def _expected(thing: object, kind: type[Kind], entry: EntryPoint) -> Kind:
    if not isinstance(thing, kind):
        raise TypeError(f"{entry.value} is a {type(thing).__name__}, not a {kind.__name__}")
    return thing


def _origin(entry: EntryPoint) -> str:
    return f"{entry.value} of {entry.dist.name}" if entry.dist is not None else entry.value
