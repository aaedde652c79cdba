"""A keeping statement in, the edits out that let go of the graph and keep the value.

`.detach()` gives the same numbers. What changes is that no gradient goes through it any more, so
it is proposed only where none is asked for.
"""

from __future__ import annotations

import ast

from leakscope.attribute.program import last_name
from leakscope.fix.edits import After, Change, Decorate, Edit, Replace, Wrap, span_of
from leakscope.fix.flow import reaches_gradient
from leakscope.fix.keeping import Keeping, is_tensor, kept_parts, parts_that_keep, root_of
from leakscope.fix.switches import is_without_gradients
from leakscope.fix.values import is_cut, is_plain, may_be_plain

DETACH = ".detach()"

_GRAPH_SHARE = 0.3
"""Of what one item keeps: as in LS101, from here on the graph is what costs."""

_IN_PLACE = frozenset({"add_", "sub_", "copy_", "lerp_", "mul_", "div_"})
_SWITCHES = frozenset({"requires_grad_", "enable_grad", "set_grad_enabled", "requires_grad"})
_TRAINS = frozenset({"backward", "grad", "zero_grad", "step", "jacobian", "hessian", "vjp"})


def carries_graph(keeping: Keeping) -> bool:
    """Graphs are what weighs."""
    if keeping.holding.kind == "graph":
        return True
    return keeping.share_of("saved", "nodes") > _GRAPH_SHARE


def let_go_of_graph(keeping: Keeping) -> Change | None:
    """`.detach()` where the value is kept; else, gradients off in a function that needs none."""
    root = _root(keeping)
    if root is None or reaches_gradient(keeping.program, keeping.target, root, keeping.module):
        return None
    if keeping.holding.kind == "graph":
        edits = _carried(keeping)
    else:
        parts = parts_that_keep(keeping, _field(keeping))
        edits = [Wrap(span_of(keeping.module, one), DETACH) for one in parts]
    if edits:
        return Change(keeping.module.file, tuple(edits))
    return _switch_off(keeping)


def _root(keeping: Keeping) -> ast.expr | None:
    """The holder as the statement says it; of an unpacking, the name that the run has."""
    if (root := root_of(keeping)) is not None:
        return root
    return _unpacked(keeping)


def _unpacked(keeping: Keeping) -> ast.Name | None:
    """`state` in `out, state = model(x, state)`."""
    named = keeping.suspect.named
    match keeping.statement:
        case ast.Assign(targets=[ast.Tuple(elts=elts)]) if named is not None:
            for one in elts:
                if isinstance(one, ast.Name) and one.id == named.name:
                    return one if one.id in _read_by(keeping.statement) else None
    return None


def _read_by(statement: ast.stmt) -> set[str]:
    """Variables on its right side: what is not among them is not carried on by it."""
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _field(keeping: Keeping) -> str:
    """The attribute of the kept object behind which the graph lies: `.loss`."""
    below = keeping.below
    via = below[1].via if len(below) > 1 else ""
    return via.removeprefix(".") if via.startswith(".") else ""


def _carried(keeping: Keeping) -> list[Edit]:
    """One graph gets longer: the value is made from that of the step before."""
    module, statement = keeping.module, keeping.statement
    is_bare = is_tensor(_held_type(keeping))
    match statement:
        case ast.AugAssign(op=ast.Add() | ast.Sub(), value=value):
            return _detached(keeping, value)
        case ast.Assign(targets=[ast.Tuple()]):
            name = _unpacked(keeping)
            return [After(span_of(module, statement), _again(name.id, is_bare))] if name else []
        case ast.Assign(targets=[target], value=value):
            if not is_bare and isinstance(value, ast.Name):
                return [Replace(span_of(module, value), _tuple_of(value.id))]
            if not is_bare:
                code = _again(ast.unparse(target), is_bare)
                return [After(span_of(module, statement), code)]
            return _detached(keeping, _added(target, value) or value)
        case ast.Expr(value=ast.Call() as call):
            return _in_place(keeping, call)
    return []


def _held_type(keeping: Keeping) -> str:
    """Of what the name stands for: a tensor, or a tuple of them."""
    path, named = keeping.holding.path, keeping.suspect.named
    if named is None:
        return keeping.grows.type
    link = path[path.index(named)]
    # `self.shadow[name] = …` stores one tensor of many.
    is_item = isinstance(root_of(keeping), ast.Subscript)
    return keeping.grows.type if is_item else link.type


def _added(target: ast.expr, value: ast.expr) -> ast.expr | None:
    """`loss` in `total = total + loss`."""
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            if ast.unparse(left) == ast.unparse(target):
                return right
            if ast.unparse(right) == ast.unparse(target) and isinstance(value.op, ast.Add):
                return left
    return None


def _detached(keeping: Keeping, value: ast.expr) -> list[Edit]:
    module = keeping.module
    if isinstance(value, ast.Tuple | ast.List | ast.Dict | ast.Set | ast.Lambda):
        return []
    if is_cut(module, value) or may_be_plain(keeping.program, module, value):
        return []
    return [Wrap(span_of(module, value), DETACH)]


def _again(name: str, is_bare: bool) -> str:
    return f"{name} = {name}.detach()" if is_bare else f"{name} = {_tuple_of(name)}"


def _tuple_of(name: str) -> str:
    return f"tuple(part.detach() for part in {name})"


def _in_place(keeping: Keeping, call: ast.Call) -> list[Edit]:
    """`buffer.mul_(0.9).add_(value)`: the tensors that are added."""
    edits: list[Edit] = []
    inner: ast.expr = call
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if inner.func.attr not in _IN_PLACE:
            return []
        for value in inner.args[:1]:
            if not is_plain(keeping.module, value):
                edits += _detached(keeping, value)
        inner = inner.func.value
    return edits


def _switch_off(keeping: Keeping) -> Change | None:
    """`@torch.no_grad()` above the function that keeps what it computes itself."""
    module = keeping.module
    function = module.scope_of[keeping.statement].function
    if function is None or not isinstance(function.node, ast.FunctionDef):
        return None  # of an async function only its first part would run without gradients
    node = function.node
    if not _is_made_inside(keeping, node) or _asks_for_gradients(keeping, node):
        return None
    if is_without_gradients(module, node) or not _imports_torch(keeping):
        return None
    return Change(module.file, (Decorate(span_of(module, node), "torch.no_grad()"),))


def _is_made_inside(keeping: Keeping, function: ast.FunctionDef) -> bool:
    """The graph begins in this function: the maker's line is in it, and nothing is handed in."""
    site = keeping.suspect.site
    if site is None or keeping.program.file(site.file) is not keeping.module:
        return False
    if not function.lineno <= site.line <= (function.end_lineno or 0):
        return False
    parameters = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
    return not any(last_name(part) in parameters for part in kept_parts(keeping))


def _asks_for_gradients(keeping: Keeping, function: ast.FunctionDef) -> bool:
    """The function, or one of the program's that it calls by name, trains or switches them on."""
    todo: list[ast.AST] = [function]
    seen: set[ast.AST] = set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for node in ast.walk(one):
            name = last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if name in _TRAINS or name in _SWITCHES:
                return True
            if one is function and _hands_out(keeping, node):
                return True
            if isinstance(node, ast.Call):
                todo += [f.node for f in keeping.program.functions.get(last_name(node.func), ())]
    return False


_HARMLESS = frozenset({"print", "eval", "info", "debug", "warning"})


def _hands_out(keeping: Keeping, node: ast.AST) -> bool:
    """Something leaves the function, by another way than the keeping statement: it may be trained
    on, which is not followed here."""
    if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
        return node.value is not None
    if not hasattr(node, "lineno"):
        return False
    is_own = keeping.module.statement(node) is keeping.statement
    match node:
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            return not is_own
        case ast.Global() | ast.Nonlocal():
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return not is_own and last_name(func) not in _HARMLESS
    return False


def _imports_torch(keeping: Keeping) -> bool:
    return "torch" in keeping.module.scope.imports
