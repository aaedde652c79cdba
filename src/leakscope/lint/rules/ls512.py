"""LS512 in the source: finished tasks and futures stay in a container."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.outline import key_of, last_name

_STARTS = frozenset({"create_task", "ensure_future", "submit", "run_coroutine_threadsafe"})


def _find(file: File) -> Iterator[Spot]:
    for store in file.containers.stores:
        values: list[ast.expr] = [store.value]
        if isinstance(store.value, ast.Name):
            values = [value for value, _ in file.kinds.values(store.value.id, store.line)]
        if not any(isinstance(one, ast.Call) and last_name(one.func) in _STARTS for one in values):
            continue
        # A local list of tasks is what `gather` waits for.
        if key_of(store.container).startswith(".") and file.containers.outlives(store):
            name = ast.unparse(store.container)
            says = f"`{name}` seems to keep every task, and a task keeps its result"
            yield Spot(store.node, says, POSSIBLE)


CHECK = Check(
    "LS512",
    "tasks-kept",
    "finished tasks or futures are kept with their results",
    "take a task out when it is done: `task.add_done_callback(tasks.discard)`",
    _find,
)
