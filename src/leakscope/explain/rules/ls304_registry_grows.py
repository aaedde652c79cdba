"""LS304: objects register themselves, or a method of theirs, and are never taken out."""

import ast

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS304",
    weight=Weight.ITEM,
    fix="take the object out of the registry when it is done with (a `close()`, or a context "
    "manager), or keep weak references (`weakref.WeakSet`, `weakref.WeakMethod`)",
)
def registry_grows(case: Case) -> bool:
    """Objects register themselves, or a method of theirs, and are never taken out.

    ## Why it leaks
    A registry on a class or in a module lives as long as the program, and so does everything that
    puts itself into it, for instance in `__init__`. A list of callbacks does the same: a bound
    method keeps its object.

    ## Example
    ```python
    class Episode:
        instances = []

        def __init__(self, steps):
            self.steps = steps
            Episode.instances.append(self)
    ```

    ## Use instead
    `instances = weakref.WeakSet()`, and for callbacks `weakref.WeakMethod`. Or take the object out
    when it is done with, in a `close()` or by a context manager.

    ## Not this rule when
    Somebody else stores the objects, and no list of methods is what grows: LS501. Hooks of torch
    are LS301, finalizers LS513.
    """
    return case.holding.item == "method" or _stores_itself(case.kept_by)


def _stores_itself(statement: str) -> bool:
    """`instances.append(self)`, `REGISTRY[name] = self`, `seen.add((self, step))`."""
    try:
        parsed = ast.parse(statement).body
    except SyntaxError:  # the first line of several
        return False
    match parsed:
        case [ast.Expr(value=ast.Call(args=stored))]:
            return any(_is_self(one) for one in stored)
        case [ast.Assign(value=stored)]:
            return _is_self(stored)
    return False


def _is_self(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(part, ast.Name) and part.id == "self" for part in parts)
