"""A name in; is each of its values built from the one before, or is it made anew each time?

An array that is larger at every look may be a history that is copied and extended, or a batch that
happens to be larger than the last: `trace = np.concatenate([trace, rows])` keeps what was there,
`x = load(length)` does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set

from leakscope.attribute.program import Function, Module, Program
from leakscope.attribute.references import Reference, references, target_of
from leakscope.model import Link

_IN_PLACE = frozenset({"resize", "resize_", "set_"})


def is_carried_on(sources: Mapping[str, str], link: Link) -> bool:
    """False if every statement that stores under this name makes the value from something else.
    True as well where that cannot be told: no source, no statement, growth in place."""
    program = Program(sources)
    target = target_of(program, link) if link.name else None
    if target is None:
        return True
    by_module: dict[Module, list[Reference]] = {}
    for reference in references(program, target):
        by_module.setdefault(reference.module, []).append(reference)
    stored = False
    for module, found in by_module.items():
        same = {id(reference.node) for reference in found}
        for reference in found:
            if _grows_in_place(reference.node, module):
                return True
            statement = _statement_of(reference.node, module)
            if isinstance(statement, ast.AugAssign):
                return True
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                if not _is_below(reference.node, statement.value, module):
                    stored = True
                    if _is_made_from(statement.value, reference.node, same, module):
                        return True
            elif not isinstance(getattr(reference.node, "ctx", ast.Load()), ast.Load):
                return True  # bound by a loop, a `with` or an import
    return not stored


def _is_made_from(value: ast.expr, stored: ast.AST, same: Set[int], module: Module) -> bool:
    """By its own old value, by a name that was made from that, or by a method of its owner."""
    parts = list(ast.walk(value))
    if any(id(part) in same for part in parts):
        return True
    if isinstance(stored, ast.Attribute) and isinstance(stored.value, ast.Name):
        owner = stored.value.id
        if any(_is_method_of(part, owner) for part in parts):
            return True
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return any(_hands_on(one, names, same) for one in _statements_around(stored, module))


def _is_method_of(node: ast.AST, owner: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name == owner
        case ast.Call(args=arguments):
            return any(isinstance(one, ast.Name) and one.id == owner for one in arguments)
    return False


def _hands_on(statement: ast.stmt, names: Set[str], same: Set[int]) -> bool:
    """`old = self.trace`, `parts.append(self.trace)`: one of the names gets the old value."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            into = [part for target in targets for part in ast.walk(target)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            into = [target]
        case ast.AugAssign(target=target, value=value):
            into = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as name)) as value):
            into = [name]
        case _:
            return False
    is_given = any(id(part) in same for part in ast.walk(value))
    return is_given and any(isinstance(part, ast.Name) and part.id in names for part in into)


def _statements_around(node: ast.AST, module: Module) -> Iterator[ast.stmt]:
    """The simple statements of the function, or of the file, that a node is in; not its own."""
    own = _statement_of(node, module)
    top: ast.AST = node
    while (up := module.parent.get(top)) is not None:
        top = up
        if isinstance(up, Function):
            break
    for statement in ast.walk(top):
        is_simple = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
        if is_simple and statement is not own:
            assert isinstance(statement, ast.stmt)
            yield statement


def _grows_in_place(node: ast.AST, module: Module) -> bool:
    up = module.parent.get(node)
    return isinstance(up, ast.Attribute) and up.attr in _IN_PLACE


def _statement_of(node: ast.AST, module: Module) -> ast.AST | None:
    at: ast.AST | None = node
    while at is not None and not isinstance(at, ast.stmt):
        at = module.parent.get(at)
    return at


def _is_below(node: ast.AST, top: ast.AST, module: Module) -> bool:
    at: ast.AST | None = node
    while at is not None and at is not top:
        at = module.parent.get(at)
    return at is top
