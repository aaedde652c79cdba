"""What a statement gives to a name, what a function returns, what an expression is made of."""

from __future__ import annotations

import ast

from leakscope.lint.outline import Function, Line, Scope, expressions, key_of, last_name, pairs_of


def value_of(line: Line, name: str = "") -> list[tuple[ast.expr, Line]]:
    """What a line gives to a name; of `for a, b in zip(x, y)` the one that belongs to it."""
    node = line.node
    if isinstance(node, ast.For | ast.AsyncFor):
        source, target = node.iter, node.target
        if isinstance(source, ast.Call) and last_name(source.func) in ("zip", "enumerate"):
            given: list[ast.expr] = list(source.args)
            if last_name(source.func) == "enumerate":
                given = [ast.Constant(0), *given[:1]]
            places = target.elts if isinstance(target, ast.Tuple) else []
            for place, value in zip(places, given, strict=False):
                if name in {one.id for one in ast.walk(place) if isinstance(one, ast.Name)}:
                    return [(value, line)]
            return []
        return [(source, line)]
    for one, value in pairs_of(node) if name else ():
        if isinstance(one, ast.Name) and one.id == name:
            return [(value, line)]
    given_value = getattr(node, "value", None)
    return [(given_value, line)] if isinstance(given_value, ast.expr) else []


def asks_for_gradients(call: ast.Call) -> bool:
    return any(
        keyword.arg == "requires_grad"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in call.keywords
    )


def returns_of(scope: Scope) -> list[tuple[ast.expr, Line]]:
    if not isinstance(scope.node, Function):
        return []
    return [
        (line.node.value, line)
        for line in scope.lines
        if isinstance(line.node, ast.Return) and line.node.value is not None
    ]


def keys_in(node: ast.AST) -> set[str]:
    return {
        key
        for one in expressions(node)
        if isinstance(one, ast.Name | ast.Attribute) and (key := key_of(one))
    }


def parts_of(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript | ast.Starred | ast.Await | ast.NamedExpr):
        return [node.value]
    return []
