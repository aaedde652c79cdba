"""LS302 in the source: a hook appends what a layer gave out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, Check, Spot
from leakscope.lint.outline import Scope, last_name, names_in

_REGISTERS = (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_backward_hook", "register_hook", "register_module_forward_hook",
)  # fmt: skip


def _find(file: File) -> Iterator[Spot]:
    if "register_" not in file.outline.text:
        return
    hooks: set[Scope] = set()
    for name in _REGISTERS:
        for _, call in file.outline.calls_of(name):
            if call.args:
                hooks.update(_functions(call.args[0], file))
    if not hooks:
        return
    for store in file.containers.stores:
        scope = store.line.scope
        if scope not in hooks or store.how == "item":
            continue
        given = {one.arg for one in scope.parameters} - {"self", "module"}
        made = {name for name in given if name in _behind(store.value, scope)}
        made_here = [one.scope for one in file.containers.made_at(store.container, store.line)]
        if made and scope not in made_here and file.containers.outlives(store):
            name = ast.unparse(store.container)
            says = f"the hook `{scope.name}` seems to add to `{name}` in every pass"
            yield Spot(store.node, says, LIKELY)


def _functions(given: ast.expr, file: File) -> list[Scope]:
    """The function of the file that is given as a hook, or that makes it."""
    if isinstance(given, ast.Call):  # make_hook(name), partial(hook, name)
        if last_name(given.func) == "partial" and given.args:
            return _functions(given.args[0], file)
        made = file.outline.functions.get(last_name(given.func), [])
        return [inner for one in made for inner in one.children]
    return file.outline.functions.get(last_name(given), [])


def _behind(value: ast.expr, scope: Scope) -> set[str]:
    """Names of the value, and of what those names were given in the same function."""
    names = names_in(value)
    for line in reversed(scope.lines):
        node = line.node
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id in names for one in node.targets
        ):
            names |= names_in(node.value)
    return names


CHECK = Check(
    "LS302",
    "hook-stashes-activations",
    "a hook keeps what every pass gives out",
    "replace what the hook keeps instead of adding to it, or clear it after each step",
    _find,
)
