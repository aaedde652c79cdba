"""A holder's name in, the statement that keeps it from growing for ever out, if there is one."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from leakscope.attribute.program import Function, Module, Program, last_name
from leakscope.attribute.references import Reference, references, target_of
from leakscope.model import Link, Site

_REMOVING = frozenset({"pop", "popleft", "popitem", "clear", "remove", "discard", "get_nowait"})
_REMOVING_FUNCTIONS = frozenset({"heappop", "heapreplace", "heappushpop"})
_SIZES = frozenset({"len", "qsize", "__len__", "sizeof", "getsizeof"})
SETUP = frozenset({"__init__", "__post_init__", "__new__", "setup", "build", "configure"})
"""Functions that make an object ready, once."""
_LIMITS = frozenset({"maxlen", "maxsize", "max_size", "capacity", "max_entries"})


def has_capacity_guard(sources: Mapping[str, str], link: Link) -> Site | None:
    """The statement that cuts the holder back once it is large, or that made it bounded.

    It says that somebody meant to bound it, not that the bound is ever reached: a guard of ten
    million entries is one too.
    """
    program = Program(sources)
    target = target_of(program, link) if link.name else None
    if target is None:
        return None
    for reference in references(program, target):
        node = _guard(reference)
        if node is not None:
            return _site(reference.module, node)
    for function in program.functions.get(link.name, ()) if link.kind == "cache" else ():
        decorators = function.node.decorator_list if isinstance(function.node, Function) else []
        for decorator in decorators:
            if _is_bounded_cache(decorator):
                return _site(function.module, decorator)
    return None


def _says_global(function: ast.AST, name: str) -> bool:
    return any(
        isinstance(one, ast.Global | ast.Nonlocal) and name in one.names
        for one in ast.walk(function)
    )


def _is_in_loop(node: ast.AST, module: Module) -> bool:
    while (up := module.parent.get(node)) is not None:
        if isinstance(up, Function | ast.Lambda | ast.ClassDef):
            return False
        if isinstance(up, ast.For | ast.While | ast.AsyncFor):
            return True
        node = up
    return False


def _guard(reference: Reference) -> ast.AST | None:
    module, node = reference.module, reference.node
    up = module.parent.get(node)
    match up:
        case ast.Assign(value=value) if node in up.targets:
            return up if _is_cut(value, reference) or _is_bounded(value) else None
        case ast.AnnAssign(value=ast.expr() as value) if up.target is node:
            return up if _is_bounded(value) else None
        case ast.Subscript(ctx=ast.Del(), slice=ast.Slice()):
            return up
        case ast.Subscript(ctx=ast.Store(), slice=ast.Slice()):
            stored = module.parent[up]
            is_cut = isinstance(stored, ast.Assign) and _is_cut(stored.value, reference)
            return up if is_cut else None
    return up if _removes(node, up, module) and _is_under_size_test(node, module) else None


def _removes(node: ast.AST, up: ast.AST | None, module: Module) -> bool:
    match up:
        case ast.Attribute(attr=name):
            call = module.parent.get(up)
            return name in _REMOVING and isinstance(call, ast.Call) and call.func is up
        case ast.Subscript(ctx=ast.Del()):
            return True
        case ast.Call(func=func):
            return last_name(func) in _REMOVING_FUNCTIONS
    # `del self.store[next(iter(self.store))]`: the inner one is only read.
    return False


def _is_cut(value: ast.expr, reference: Reference) -> bool:
    """`N = N[-100:]`."""
    match value:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as of, slice=ast.Slice()):
            return ast.unparse(of) == ast.unparse(reference.node)
    return False


def _is_bounded(value: ast.expr) -> bool:
    """`deque(maxlen=100)`, `deque([], 100)`, `Queue(10)`, `LRUCache(maxsize=128)`."""
    if not isinstance(value, ast.Call):
        return False
    limits = [keyword.value for keyword in value.keywords if keyword.arg in _LIMITS]
    name = last_name(value.func)
    if name == "deque":
        limits += value.args[1:2]
    elif name in {"Queue", "LifoQueue", "PriorityQueue", "LRUCache", "TTLCache", "LFUCache"}:
        limits += value.args[:1]
    return any(not _is_none(limit) for limit in limits)


def _is_bounded_cache(decorator: ast.expr) -> bool:
    """`lru_cache` keeps 128 unless it is told otherwise; `cache` keeps everything."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if last_name(called) != "lru_cache":
        return isinstance(decorator, ast.Call) and _is_bounded(decorator)
    if not isinstance(decorator, ast.Call):
        return True
    given = [*decorator.args[:1], *(k.value for k in decorator.keywords if k.arg == "maxsize")]
    return not any(_is_none(limit) for limit in given)


def _is_none(node: ast.expr) -> bool:
    """No limit: None, and for queues 0."""
    return isinstance(node, ast.Constant) and not node.value


def _is_under_size_test(node: ast.AST, module: Module) -> bool:
    """Inside an `if` or `while` that asks how large something is."""
    while (up := module.parent.get(node)) is not None:
        if isinstance(up, Function | ast.Lambda | ast.ClassDef):
            return False
        if isinstance(up, ast.If | ast.While) and up.test is not node and _asks_size(up.test):
            return True
        node = up
    return False


def _asks_size(test: ast.expr) -> bool:
    return any(_names_size(node) for node in ast.walk(test)) and any(
        isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE | ast.Eq)
        for node in ast.walk(test)
        if isinstance(node, ast.Compare)
        for op in node.ops
    )


def _names_size(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) in _SIZES
    name = last_name(node).lower() if isinstance(node, ast.Name | ast.Attribute) else ""
    return any(word in name for word in ("max", "capacity", "limit", "size", "budget"))


def _site(module: Module, node: ast.AST) -> Site:
    is_decorator = not isinstance(node, ast.stmt) and isinstance(
        module.parent.get(node), Function | ast.ClassDef
    )
    line = getattr(node if is_decorator else module.statement(node), "lineno", 0)
    function = module.scope_of[node].function
    name = function.qualname if function is not None else None
    return Site(module.file, line, name, module.source(line))
