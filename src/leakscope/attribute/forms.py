"""What a statement does to the thing a name refers to, told from the expression alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum, auto

from leakscope.attribute.program import Module, last_name


class Form(Enum):
    """What a statement does to the thing that a name refers to."""

    ADD = auto()  # N.append(x), heappush(N, x), register_hook(N.append)
    VERB = auto()  # N.log(x): a method of unknown class whose name says that it keeps
    ITEM = auto()  # N[k] = x
    FIXED_ITEM = auto()  # N["loss"] = x, N[0] = x: the same place each time
    ITEM_MORE = auto()  # N[k] += x
    MORE = auto()  # N += x
    JOIN = auto()  # N = N + [x], N = [*N, x], N = torch.cat([N, x])
    AGAIN = auto()  # N = f(N)
    IN_PLACE = auto()  # N.add_(x)
    SET = auto()  # N = x
    EMPTY = auto()  # N = [], N = 0.0, N = None
    GIVEN = auto()  # fill(N, x), a function whose source is not here
    LIBRARY = auto()  # x.register_forward_hook(f) for `_forward_hooks`
    DECORATED = auto()  # @lru_cache


ADD = frozenset(
    {
        "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault",
        "put", "put_nowait", "push", "register", "submit", "subscribe", "enqueue", "insort",
        "__setitem__", "__iadd__", "writelines",
    }
)  # fmt: skip
_ADD_PREFIXES = ("add_", "append_", "push_", "put_", "register_", "insert_", "subscribe_", "on_")
_VERBS = frozenset(
    {
        "log", "record", "store", "track", "remember", "write", "save", "observe", "collect",
        "attach", "connect", "send", "emit", "cache", "memoize", "accumulate",
    }
)  # fmt: skip
ACCESS = frozenset({"get", "setdefault", "values", "items", "__getitem__"})
_ADDING_FUNCTIONS = frozenset({"heappush", "insort", "insort_left", "insort_right", "setitem"})
_CONTAINERS = frozenset({"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"})
_JOINING = frozenset(
    {
        "cat", "concat", "concatenate", "append", "vstack", "hstack", "stack", "chain", "union",
        "merge", "column_stack", "row_stack", "pad_sequence",
    }
)  # fmt: skip
_CUTTING = frozenset({"detach", "detach_", "item", "tolist", "numpy", "float", "int"})
HARMLESS = frozenset(
    {
        "print", "len", "repr", "str", "format", "info", "debug", "warning", "pprint", "dump",
        "save", "isinstance",
    }
)  # fmt: skip
_EMPTY_MAKERS = _CONTAINERS | {
    "frozenset", "tuple", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "field", "zeros",
    "WeakValueDictionary", "WeakKeyDictionary", "WeakSet", "UserDict", "UserList", "tensor",
    "zeros_like", "empty",
}  # fmt: skip


def adds_to_first(func: ast.expr, name: str) -> bool:
    """`heapq.heappush(N, x)`, `list.append(N, x)`."""
    if name in _ADDING_FUNCTIONS:
        return True
    return name in ADD and isinstance(func, ast.Attribute) and last_name(func.value) in _CONTAINERS


def form_of_call(call: ast.Call, name: str) -> Form | None:
    if not call.args and not call.keywords:
        return None
    if name in ADD or name.startswith(_ADD_PREFIXES):
        return Form.IN_PLACE if name.endswith("_") else Form.ADD
    if name.endswith("_") and not name.startswith("_") and name not in _CUTTING:
        return Form.IN_PLACE
    return Form.VERB if name in _VERBS else None


def is_fixed(index: ast.expr) -> bool:
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Constant)


def form_of_rebind(value: ast.expr, same: set[ast.expr], module: Module) -> Form | None:
    """How `N = value` treats what N was; None where it only cuts it back."""
    mentions = [node for node in _reached(value, same, module) if node in same]
    if not mentions:
        if _is_mentioned(value, same):
            return None  # N = N.detach(), N = N[-100:]
        return Form.EMPTY if is_empty(value) else Form.SET
    return Form.JOIN if any(_is_joined(n, value, module) for n in mentions) else Form.AGAIN


def _is_mentioned(value: ast.expr, same: set[ast.expr]) -> bool:
    return any(node in same for node in ast.walk(value))


def is_reached(value: ast.expr, same: set[ast.expr], module: Module) -> bool:
    return any(node in same for node in _reached(value, same, module))


def _reached(
    value: ast.expr, same: set[ast.expr], module: Module, depth: int = 1
) -> Iterator[ast.expr]:
    """Parts of an expression that live on in its value, and those of the variables in it."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        if _cuts(node, same):
            continue
        if isinstance(node, ast.expr):
            yield node
        if isinstance(node, ast.Name) and node not in same and depth:
            owner = module.scope_of[node].resolve(node.id)
            if owner.kind == "function":
                for earlier in owner.values.get(node.id, ()):
                    if earlier is not value and earlier in module.parent:
                        yield from _reached(earlier, same, module, depth - 1)
        todo.extend(ast.iter_child_nodes(node))


def kept_names(value: ast.AST) -> set[str]:
    """Variables that live on in what is stored: `loss` in `loss`, not in `loss.item()`."""
    names, todo = set[str](), [value]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        if not _cuts(node, set()):
            todo.extend(ast.iter_child_nodes(node))
    return names


def _cuts(node: ast.AST, same: set[ast.expr]) -> bool:
    """`x.detach()`, `float(x)`, `N[-100:]`: the value no longer holds what it was made of."""
    match node:
        case ast.Call(func=func):
            return last_name(func) in _CUTTING
        case ast.Subscript(value=of, slice=ast.Slice()):
            return of in same
        case ast.Attribute(attr="data"):
            return node not in same
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return any(generator.ifs for generator in node.generators)
    return False


def _is_joined(node: ast.expr, value: ast.expr, module: Module) -> bool:
    """N stands where a longer one is made of it."""
    inner: ast.AST = node
    while inner is not value and inner in module.parent:
        up = module.parent[inner]
        match up:
            case ast.BinOp(op=ast.Add() | ast.BitOr()) | ast.Starred():
                return True
            case ast.Dict():
                return inner in up.values and up.keys[up.values.index(inner)] is None
            case ast.Call():
                return last_name(up.func) in _JOINING
            case ast.List() | ast.Tuple() | ast.Attribute():
                inner = up
            case _:
                return False
    return False


def is_empty(value: ast.expr) -> bool:
    """A beginning: nothing is in it yet."""
    match value:
        case ast.Constant():
            return True
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Set(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Call(func=func, args=args):
            is_plain = not any(isinstance(a, ast.ListComp | ast.GeneratorExp) for a in args)
            return last_name(func) in _EMPTY_MAKERS and is_plain and not _holds_names(args)
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
            return all(is_empty(one) for one in elts)
        case ast.BinOp(left=ast.List(elts=[ast.Constant()]), op=ast.Mult()):  # [0] * n
            return True
    return False


def _holds_names(args: list[ast.expr]) -> bool:
    """`list(rows)` is filled, `defaultdict(list)` is not."""
    makers = _CONTAINERS | {"int", "float", "str"}
    return any(not isinstance(a, ast.Constant) and last_name(a) not in makers for a in args)
