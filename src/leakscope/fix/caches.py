"""A cache without a size in, one with a size out: it can compute anew what it has forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.attribute.program import Module, last_name
from leakscope.fix.edits import Change, Edit, Import, Replace, span_of
from leakscope.fix.keeping import Keeping

_RESULTS = 128
"""What `functools.lru_cache` itself keeps when nobody says otherwise."""

_RANDOM = frozenset(
    {
        "random", "rand", "randn", "randint", "randrange", "choice", "shuffle", "normal", "uniform",
        "time", "perf_counter", "now", "open", "read", "next", "input", "uuid4", "sample", "print",
        "append", "global",
    }
)  # fmt: skip


def is_cache(keeping: Keeping) -> bool:
    path = keeping.holding.path[: keeping.holding.grows_at + 1]
    return any(link.kind == "cache" for link in path)


def bound_cache(keeping: Keeping) -> Change | None:
    """`@cache` → `@lru_cache(maxsize=128)`, on a function that only computes."""
    function = keeping.statement
    scope = keeping.module.scope_of[function]
    if not isinstance(function, ast.FunctionDef) or scope.kind == "class":
        return None
    if _does_more_than_compute(keeping, function):
        return None
    for decorator in function.decorator_list:
        edits = tuple(_bounded(keeping.module, decorator))
        if edits:
            return Change(keeping.module.file, edits)
    return None


def _does_more_than_compute(keeping: Keeping, function: ast.FunctionDef) -> bool:
    """The function, or one of the program's that it calls by name."""
    todo: list[ast.AST] = [function]
    seen: set[ast.AST] = set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for node in ast.walk(one):
            if _is_more_than_computing(node, is_result=one is function):
                return True
            if isinstance(node, ast.Call):
                todo += [f.node for f in keeping.program.functions.get(last_name(node.func), ())]
    return False


def _is_more_than_computing(node: ast.AST, *, is_result: bool) -> bool:
    """It draws numbers, reads or writes; or returns a thing of which there shall be one."""
    match node:
        case ast.Return(value=ast.List() | ast.Dict() | ast.Set()) if is_result:
            return True
        case ast.Return(value=ast.Call(func=func)) if is_result:
            name = last_name(func)
            return name[:1].isupper() or name in {"list", "dict", "set", "deque", "defaultdict"}
        case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await():
            return True
        case ast.Call(func=func):
            return last_name(func) in _RANDOM
        case ast.Attribute(ctx=ast.Store()):
            return True
    return False


def _bounded(module: Module, decorator: ast.expr) -> Iterator[Edit]:
    match decorator:
        case ast.Attribute(value=ast.Name(id=owner), attr="cache") if _is_functools(module, owner):
            code = f"{owner}.lru_cache(maxsize={_RESULTS})"
            yield Replace(span_of(module, decorator), code)
        case ast.Name(id="cache") if module.scope.imports.get("cache") == ("functools", "cache"):
            yield Replace(span_of(module, decorator), f"lru_cache(maxsize={_RESULTS})")
            yield _import_of_lru_cache(module)
        case ast.Call(func=func, args=args, keywords=keywords) if last_name(func) == "lru_cache":
            given = [*args[:1], *(k.value for k in keywords if k.arg == "maxsize")]
            for value in given:
                if isinstance(value, ast.Constant) and value.value is None:
                    yield Replace(span_of(module, value), str(_RESULTS))


def _is_functools(module: Module, name: str) -> bool:
    return module.scope.imports.get(name) == ("functools", "")


def _import_of_lru_cache(module: Module) -> Edit:
    """In place of `cache` where that was its only use; else beside it."""
    uses = [node for node in module.names.get("cache", ()) if isinstance(node.ctx, ast.Load)]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "functools" and len(uses) == 1:
            names = {alias.name for alias in node.names}
            for alias in node.names:
                if alias.name == "cache" and alias.asname is None and "lru_cache" not in names:
                    return Replace(span_of(module, alias), "lru_cache")
    return Import("functools", "lru_cache")
