"""A place in the source in, whether graphs are made there out."""

from __future__ import annotations

import ast

from leakscope.attribute.program import Function, Module, last_name


def is_without_gradients(module: Module, node: ast.AST) -> bool:
    """Inside `with torch.no_grad():`, or in a function that is decorated so."""
    inner: ast.AST | None = node
    while inner is not None:
        if isinstance(inner, ast.With | ast.AsyncWith):
            if any(_switches_off(item.context_expr) for item in inner.items):
                return True
        elif isinstance(inner, Function):
            return any(_switches_off(one) for one in inner.decorator_list)
        elif isinstance(inner, ast.Lambda):
            return False
        inner = module.parent.get(inner)
    return False


def _switches_off(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and any(
        isinstance(arg, ast.Constant) and arg.value is False for arg in node.args
    ):
        return last_name(called) == "set_grad_enabled"
    return last_name(called) in {"no_grad", "inference_mode"}
