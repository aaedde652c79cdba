"""A list or array of which only the end is ever read in, the statement out that cuts the rest off.

Every use of the name in the program, of whatever object it may be an attribute, has to read a fixed
number of entries from the end: then nobody can tell that the older ones are gone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.attribute.forms import is_empty
from leakscope.attribute.program import Function, Module, Program, Scope, last_name
from leakscope.attribute.references import Reference, arguments_for, references
from leakscope.fix.edits import After, Change, span_of
from leakscope.fix.keeping import Keeping, is_tensor

_SPYING = frozenset({"vars", "asdict", "astuple", "__dict__", "__getstate__", "__reduce__"})
"""The program looks at attributes without naming them."""

_JOINS = frozenset({"cat", "concat", "concatenate", "vstack", "row_stack", "append"})
_AXES = frozenset({"dim", "axis"})

_UNKNOWN = 1 << 40
_NOTHING = 0
"""A use that needs no entry at all: it adds some, or removes all."""


def keep_last(keeping: Keeping) -> Change | None:
    """`del xs[:-5]` below `xs.append(x)`; `x = x[-5:].copy()` below `x = concatenate((x, y))`."""
    is_list = keeping.grows.type == "list"
    if keeping.target is None or not (is_list or keeping.holding.kind == "array"):
        return None
    holder = _filled(keeping.statement)
    found = list(references(keeping.program, keeping.target))
    if holder is None or holder not in [reference.node for reference in found]:
        return None
    if not any(_is_made(reference) for reference in found) or _is_spied_on(keeping):
        return None
    needed = [_needs(keeping, reference) for reference in found]
    most = max(needed, default=_UNKNOWN)
    if not 0 < most < _UNKNOWN:
        return None
    name = ast.unparse(holder)
    copy = "clone" if is_tensor(keeping.grows.type) else "copy"
    code = f"del {name}[:-{most}]" if is_list else f"{name} = {name}[-{most}:].{copy}()"
    return Change(keeping.module.file, (After(span_of(keeping.module, keeping.statement), code),))


def _filled(statement: ast.stmt) -> ast.expr | None:
    """The list or array that the statement makes longer at its end."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=holder, attr="append" | "extend"), args=[_])
        ):
            return _plain(holder)
        case ast.AugAssign(target=holder, op=ast.Add()):
            return _plain(holder)
        case ast.Assign(targets=[holder], value=value) if _is_longer(holder, value):
            return _plain(holder)
    return None


def _plain(node: ast.expr) -> ast.expr | None:
    return node if isinstance(node, ast.Name | ast.Attribute) else None


def _is_longer(holder: ast.expr, value: ast.expr) -> bool:
    """`xs + rows`, `[*xs, row]`, `torch.cat((xs, rows))`, along the first dimension."""
    name = ast.unparse(holder)
    match value:
        case ast.BinOp(left=left, op=ast.Add()):
            return ast.unparse(left) == name
        case ast.List(elts=[ast.Starred(value=first), *_]):
            return ast.unparse(first) == name
        case ast.Call(func=func, args=[first, *rest], keywords=keywords):
            along = [k.value for k in keywords if k.arg in _AXES]
            if last_name(func) == "append":  # numpy's flattens without an axis
                is_along = bool(along) and ast.unparse(first) == name
            else:
                along += rest
                parts = first.elts if isinstance(first, ast.Tuple | ast.List) else []
                is_along = bool(parts) and ast.unparse(parts[0]) == name
            is_first = all(isinstance(one, ast.Constant) and one.value == 0 for one in along)
            return last_name(func) in _JOINS and is_along and is_first
    return False


def _is_made(reference: Reference) -> bool:
    """The program itself makes it: it is nobody else's list."""
    up = reference.module.parent.get(reference.node)
    match up:
        case ast.Assign(value=value) if reference.node in up.targets:
            return is_empty(value) or isinstance(value, ast.Call)
        case ast.AnnAssign(value=ast.expr() as value) if up.target is reference.node:
            return is_empty(value)
    return False


def _needs(keeping: Keeping, reference: Reference) -> int:
    """How many of the last entries a use may read; `_UNKNOWN` if that cannot be told."""
    node, module = reference.node, reference.module
    up = module.parent.get(node)
    match up:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            statement = module.statement(node)
            is_own = _is_made(reference) or _filled(statement) is node
            return _NOTHING if is_own else _UNKNOWN
        case ast.Attribute(attr="append" | "extend" | "clear"):
            call = module.parent.get(up)
            is_alone = isinstance(call, ast.Call) and isinstance(module.parent[call], ast.Expr)
            return _NOTHING if is_alone else _UNKNOWN
        case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if value is node:
            return _from_the_end(keeping.program, module, index)
        case ast.Call(func=ast.Name(id="len")):
            return _compared(keeping.program, module, up)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if test is node:
            return 1
        case ast.UnaryOp(op=ast.Not()) if keeping.grows.type == "list":
            return 1
    return _NOTHING if _is_joined(node, module) else _UNKNOWN


def _is_joined(node: ast.expr, module: Module) -> bool:
    """`xs` on the right of `xs = xs + rows`."""
    statement = module.statement(node)
    holder = _filled(statement) if isinstance(statement, ast.Assign) else None
    if holder is None or ast.unparse(holder) != ast.unparse(node):
        return False
    assert isinstance(statement, ast.Assign)
    mentions = [one for one in ast.walk(statement.value) if _same(one, node)]
    return mentions == [node]


def _same(one: ast.AST, node: ast.expr) -> bool:
    return isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one) == ast.unparse(node)


def _from_the_end(program: Program, module: Module, index: ast.expr) -> int:
    """`[-1]`, `[-5:]`, `[-5:-1]`."""
    match index:
        case ast.Slice(lower=ast.expr() as lower, upper=upper, step=None):
            if upper is not None and max(_values(program, module, upper)) >= 0:
                return _UNKNOWN
            index = lower
    values = [-value for value in _values(program, module, index)]
    return max(values) if min(values) > 0 else _UNKNOWN


def _compared(program: Program, module: Module, call: ast.Call) -> int:
    """`len(xs) < 2`: as many entries as decide it, and the answer stays what it was."""
    up = module.parent.get(call)
    match up:
        case ast.Compare(left=left, ops=[op], comparators=[other]) if left is call:
            limit = max(_values(program, module, other))
            if not 0 <= limit < _UNKNOWN:
                return _UNKNOWN
            return limit if isinstance(op, ast.Lt | ast.GtE) else limit + 1
    return _UNKNOWN


def _values(program: Program, module: Module, node: ast.expr) -> list[int]:
    """The whole numbers that an expression may stand for; `_UNKNOWN` among them if not all are
    known."""
    match node:
        case ast.Constant(value=int(value)):
            return [value]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return [_negative(value) for value in _values(program, module, inner)]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1 if isinstance(op, ast.Add) else -1
            return [
                _UNKNOWN if _UNKNOWN in (abs(one), abs(two)) else one + sign * two
                for one in _values(program, module, left)
                for two in _values(program, module, right)
            ]
        case ast.Name(id=name):
            owner = module.scope_of[node].resolve(name)
            if len(owner.bound_at.get(name, ())) == 1:
                return list(_bound_to(program, owner, name)) or [_UNKNOWN]
    return [_UNKNOWN]


def _negative(value: int) -> int:
    return value if value == _UNKNOWN else -value


def _bound_to(program: Program, owner: Scope, name: str) -> Iterator[int]:
    """A constant of a module or function, or what a parameter is given by all calls there are."""
    node = owner.node
    if isinstance(node, Function) and name in owner.parameters:
        yield from _given(program, owner, node, name)
        return
    for value in owner.values.get(name, ()):
        is_written_out = isinstance(value, ast.Constant)
        yield from _values(program, owner.module, value) if is_written_out else [_UNKNOWN]


def _given(
    program: Program,
    owner: Scope,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
) -> Iterator[int]:
    if not _is_only_called(program, owner):
        yield _UNKNOWN
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    defaults = dict(zip(reversed(names), reversed(node.args.defaults), strict=False))
    if name in defaults:
        yield from _values(program, owner.module, defaults[name])
    for value, module in arguments_for(program, owner, name):
        yield from _values(program, module, value)


def _is_only_called(program: Program, owner: Scope) -> bool:
    """Nobody hands the function on: all of its calls are seen, and none is spread out."""
    is_method = owner.parent is not None and owner.parent.kind == "class"
    for module in program.modules:
        plain: list[ast.Name] = [] if is_method else module.names.get(owner.name, [])
        for use in (*module.attributes.get(owner.name, ()), *plain):
            call = module.parent.get(use)
            if not isinstance(call, ast.Call) or call.func is not use:
                return False
            if any(isinstance(arg, ast.Starred) for arg in call.args):
                return False
            if any(keyword.arg is None for keyword in call.keywords):
                return False
    return True


_WRITING = frozenset({"dump", "dumps", "save", "deepcopy"})


def _is_spied_on(keeping: Keeping) -> bool:
    """The attributes of the object may be read without being named: it is stored as a whole."""
    target = keeping.target
    if target is None or target.kind != "attribute":
        return False
    for module in keeping.program.modules:
        if any(name in module.calls or name in module.attributes for name in _SPYING):
            return True
        for call in (call for name in _WRITING for call in module.calls.get(name, ())):
            for value in call.args[:1]:
                if isinstance(value, ast.Name | ast.Attribute):
                    classes = keeping.program.classes_of(value, module.scope_of[call])
                    if not classes or target.owner in classes:
                        return True
    return False
