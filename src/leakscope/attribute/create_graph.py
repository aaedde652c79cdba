"""The call that gives gradients a graph: `backward(create_graph=True)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from leakscope.attribute.places import place
from leakscope.model import Frame, Site


def find_create_graph(sources: Mapping[str, str]) -> Site | None:
    """The first such call of a `backward` in the program's files; `autograd.grad` is harmless."""
    for file, text in sources.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_backward(node) and _creates_graph(node):
                return place(sources, Frame(file, node.lineno))
    return None


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _creates_graph(call: ast.Call) -> bool:
    return any(
        keyword.arg == "create_graph"
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
        for keyword in call.keywords
    )
