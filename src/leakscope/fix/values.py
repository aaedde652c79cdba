"""Expressions in, what they may be: a plain value, a tensor without a graph, or one with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.attribute.program import Function, Module, Program, Scope, last_name
from leakscope.attribute.references import arguments_for

_PLAIN = frozenset(
    {
        "item", "float", "int", "str", "len", "round", "repr", "bool", "tolist", "range", "time",
        "perf_counter", "monotonic", "format", "join", "hash", "id", "strip", "lower", "split",
        "count", "index", "randrange", "randint", "get_last_lr", "now", "isoformat",
    }
)  # fmt: skip
"""Calls whose value is a number, a text or the like."""

_WITHOUT_GRAPH = frozenset({"detach", "detach_", "numpy", "argmax", "argmin", "no_grad"})

_TENSOR_METHODS = frozenset(
    {
        "backward", "detach", "requires_grad_", "softmax", "log_softmax", "sigmoid", "unsqueeze",
        "amax", "tanh", "relu", "masked_fill",
    }
)  # fmt: skip
"""Methods that tensors have, and neither arrays nor anything else in a training loop."""


def is_plain(module: Module, node: ast.expr, depth: int = 2) -> bool:
    """Surely no tensor: a constant, a text, a number that was read out of one."""
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Call(func=func):
            return last_name(func) in _PLAIN
        case ast.UnaryOp(operand=inner):
            return is_plain(module, inner, depth)
        case ast.BinOp(left=left, right=right):
            return is_plain(module, left, depth) and is_plain(module, right, depth)
        case ast.Name() if depth:
            found = list(_bindings(module, node))
            return bool(found) and all(
                value is None or is_plain(module, value, depth - 1) for value in found
            )
    return False


def is_cut(module: Module, node: ast.expr, depth: int = 1) -> bool:
    """The value has no graph already: `x.detach()`, `x.detach().cpu()`, `x.data`, a plain value."""
    inner: ast.expr | None = node
    while inner is not None:
        match inner:
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                if name in _WITHOUT_GRAPH or name in _PLAIN:
                    return True
                inner = value
            case ast.Attribute(attr="data"):
                return True
            case ast.Subscript(value=value) | ast.Attribute(value=value):
                inner = value
            case ast.Name() if depth:
                found = list(_bindings(module, inner))
                return is_plain(module, node) or (
                    bool(found)
                    and all(v is not None and is_cut(module, v, depth - 1) for v in found)
                )
            case _:
                inner = None
    return is_plain(module, node)


def may_be_plain(program: Program, module: Module, node: ast.expr, depth: int = 2) -> bool:
    """Whether it is a number at times, so that `.detach()` would fail there."""
    if is_plain(module, node):
        return True
    match node:
        case ast.IfExp(body=body, orelse=other):
            return any(may_be_plain(program, module, one, depth) for one in (body, other))
        case ast.BoolOp(values=values):
            return any(may_be_plain(program, module, one, depth) for one in values)
        case ast.Name() if depth:
            bound = [value for value in _bindings(module, node) if value is not None]
            if any(may_be_plain(program, module, value, depth - 1) for value in bound):
                return True
            owner = module.scope_of[node].resolve(node.id)
            if _is_tested(module, node, owner):
                return True
            if isinstance(owner.node, Function) and node.id in owner.parameters:
                if _has_plain_default(owner.node, node.id):
                    return True
                return any(
                    may_be_plain(program, where, value, depth - 1)
                    for value, where in arguments_for(program, owner, node.id)
                )
    return False


_TESTS = frozenset({"isinstance", "is_tensor", "hasattr", "callable"})


def _is_tested(module: Module, node: ast.Name, owner: Scope) -> bool:
    """`x is None`, `isinstance(x, float)`: the program itself does not know what it is."""
    for other in module.names.get(node.id, ()):
        up = module.parent.get(other)
        if module.scope_of[other].resolve(node.id) is not owner:
            continue
        match up:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return True
            case ast.Call(func=func) if last_name(func) in _TESTS:
                return True
    return False


def _has_plain_default(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """`loss=None`, `loss: float`, `loss: Tensor | None`."""
    arguments = function.args
    names = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    defaults = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    if isinstance(defaults.get(name), ast.Constant):
        return True
    for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if arg.arg == name and arg.annotation is not None:
            words = ast.unparse(arg.annotation)
            return any(word in words for word in ("None", "Optional", "float", "int", "Union"))
    return False


def is_surely_tensor(module: Module, node: ast.expr) -> bool:
    """The program treats it as a tensor: it calls a tensor's method on it."""
    if not isinstance(node, ast.Name):
        return False
    owner = module.scope_of[node].resolve(node.id)
    for other in module.names.get(node.id, ()):
        up = module.parent.get(other)
        if (
            isinstance(up, ast.Attribute)
            and up.attr in _TENSOR_METHODS
            and module.scope_of[other].resolve(node.id) is owner
        ):
            return True
    return False


def _bindings(module: Module, name: ast.Name) -> Iterator[ast.expr | None]:
    """What a variable is assigned in its scope; None for a number of a loop."""
    owner = module.scope_of[name].resolve(name.id)
    for node in module.names.get(name.id, ()):
        if isinstance(node.ctx, ast.Store) and module.scope_of[node].resolve(name.id) is owner:
            yield from _bound(module, node, owner)


def _bound(module: Module, node: ast.Name, owner: Scope) -> Iterator[ast.expr | None]:
    up = module.parent.get(node)
    match up:
        case ast.Assign(value=value) | ast.NamedExpr(value=value):
            yield value
        case ast.AnnAssign(value=ast.expr() as value):
            yield value
        case ast.AugAssign(value=value):
            yield value
        case ast.For(iter=ast.Call(func=func)) if up.target is node:
            yield None if last_name(func) == "range" else ast.Tuple([], ast.Load())
        case ast.Tuple(elts=elts):
            yield from _unpacked(module, up, elts.index(node))
        case _:
            yield ast.Tuple([], ast.Load())  # something that is not known


def _unpacked(module: Module, targets: ast.Tuple, index: int) -> Iterator[ast.expr | None]:
    up = module.parent.get(targets)
    match up:
        case ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(targets.elts):
            yield values[index]
        case ast.For(iter=ast.Call(func=func)) if last_name(func) == "enumerate" and index == 0:
            yield None
        case _:
            yield ast.Tuple([], ast.Load())
