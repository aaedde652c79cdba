"""LS202 in the source: `__getitem__` of a dataset fills a container that nothing empties."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import scope_of_class
from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.outline import Scope, key_of, last_name
from leakscope.lint.rules.ls201 import is_dataset


def _find(file: File) -> Iterator[Spot]:
    owners = [one for one in file.outline.classes.values() if is_dataset(one)]
    if not owners:
        return
    for store in file.containers.stores:
        owner = scope_of_class(store.line)
        if owner not in owners or not key_of(store.container).startswith("."):
            continue
        if store.line.scope.name in _fetching(owner) and file.containers.outlives(store):
            name = ast.unparse(store.container)
            says = f"`{name}` seems to keep what every sample leaves, in each worker"
            yield Spot(store.node, says, POSSIBLE)


def _fetching(owner: Scope) -> set[str]:
    """`__getitem__` and what it calls on itself."""
    found = {"__getitem__", "__iter__"}
    for scope in owner.children:
        if scope.name in ("__getitem__", "__iter__"):
            found |= {
                last_name(one.func) for one in ast.walk(scope.node) if isinstance(one, ast.Call)
            }
    return found - {"__init__"}


CHECK = Check(
    "LS202",
    "cache-in-worker",
    "a dataset keeps what its samples leave, in every worker",
    "bound the cache, or cache outside the workers",
    _find,
)
