"""Source in, for each line the first line of its statement: a call over three lines is one line of
the table."""

from __future__ import annotations

import ast
import linecache
from types import CodeType


def statements_of(code: CodeType) -> dict[int, int]:
    """Empty where the source cannot be read: then every line stands for itself."""
    text = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    first: dict[int, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            for line in range(node.lineno, _end_of_head(node) + 1):
                first[line] = node.lineno
    return first


def _end_of_head(node: ast.stmt | ast.ExceptHandler) -> int:
    """The last line of a statement without the statements inside it."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return node.end_lineno or node.lineno
    inner = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    decorators = getattr(inner, "decorator_list", [])
    first: int = min(one.lineno for one in (inner, *decorators))
    return max(node.lineno, first - 1)
