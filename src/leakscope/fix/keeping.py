"""A suspect in, its keeping statement as a tree out, with what it stores and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leakscope.attribute.program import Module, Program, last_name
from leakscope.attribute.references import Target, target_of
from leakscope.attribute.stacks import assigned_by, statement_at
from leakscope.attribute.suspect import Suspect
from leakscope.fix.values import is_cut, is_surely_tensor, may_be_plain
from leakscope.model import Holding, Link, Site

_TENSORS = ("Tensor", "Parameter", "Buffer")
_FIRST = frozenset(
    {"append", "appendleft", "add", "put", "put_nowait", "push", "appendright", "send"}
)
_LAST = frozenset({"insert", "heappush", "insort", "setdefault", "__setitem__"})
_EVERY = frozenset({"update", "log", "record", "track", "observe", "store", "remember"})


@dataclass(frozen=True)
class Keeping:
    """One statement that keeps something, and what the run knows about it."""

    program: Program
    module: Module
    statement: ast.stmt
    suspect: Suspect
    target: Target | None

    @property
    def holding(self) -> Holding:
        return self.suspect.holding

    @property
    def grows(self) -> Link:
        return self.holding.path[self.holding.grows_at]

    @property
    def below(self) -> tuple[Link, ...]:
        """What one item leads to, itself first."""
        return self.holding.path[self.holding.grows_at + 1 :]

    @property
    def item_type(self) -> str:
        """Of the thing kept: `Tensor`, `tuple`, `Detection`."""
        return (self.holding.item or "").partition(" ")[0].rpartition(".")[2]

    def share_of(self, *parts: str) -> float:
        whole = sum(self.holding.parts.values())
        return sum(self.holding.parts.get(part, 0.0) for part in parts) / whole if whole else 0.0


def keeping_of(suspect: Suspect, sources: Mapping[str, str]) -> Keeping | None:
    """None where the run found no statement, or its file is not Python any more."""
    site = suspect.keeper or _maker(suspect)
    if site is None or site.file not in sources:
        return None
    program = Program(sources)
    module = program.file(site.file)
    statement = _statement(module, site.line) if module is not None else None
    if module is None or statement is None:
        return None
    target = target_of(program, suspect.named) if suspect.named is not None else None
    return Keeping(program, module, statement, suspect, target)


def _maker(suspect: Suspect) -> Site | None:
    """What has no name of its own is changed where it is made: a graph behind `shadow[name]`."""
    return suspect.site if suspect.holding.kind == "graph" else None


def _statement(module: Module, line: int) -> ast.stmt | None:
    """The innermost statement on a line; of a decorator's line, the function."""
    found: ast.stmt | None = None
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min((one.lineno for one in decorators), default=node.lineno)
            if first <= line <= (node.end_lineno or node.lineno) and (
                found is None or node.lineno >= found.lineno
            ):
                found = node
    return found


def is_tensor(type_name: str) -> bool:
    return type_name.startswith(_TENSORS)


def root_of(keeping: Keeping) -> ast.expr | None:
    """What the statement stores into: `self.losses` in `self.losses.append(x)`."""
    match keeping.statement:
        case ast.Expr(value=ast.Call(func=func, args=args)):
            if last_name(func) in {"heappush", "insort"} and args:
                return args[0]
            inner: ast.expr = func
            while isinstance(inner, ast.Attribute) and _is_call(inner, keeping.module):
                inner = inner.value
                while isinstance(inner, ast.Call):  # `buffer.mul_(0.9).add_(x)`
                    inner = inner.func
            return inner if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript) else None
        case ast.Assign(targets=[ast.Name() | ast.Attribute() | ast.Subscript() as target]):
            return target
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return target
    return None


def _is_call(node: ast.Attribute, module: Module) -> bool:
    up = module.parent.get(node)
    return isinstance(up, ast.Call) and up.func is node


def kept_parts(keeping: Keeping) -> list[ast.expr]:
    """The expressions whose values the statement stores, apart from those that name the holder."""
    match keeping.statement:
        case ast.Expr(value=ast.Call(func=func, args=args, keywords=keywords)):
            name = last_name(func)
            if any(isinstance(arg, ast.Starred) for arg in args):
                return []
            if name in _FIRST:
                return args[:1]
            if name in _LAST:
                return args[-1:]
            if name == "extend" and args and isinstance(args[0], ast.List | ast.Tuple):
                return list(args[0].elts)
            if name in _EVERY:
                return [*args, *(keyword.value for keyword in keywords)]
        case ast.Assign(targets=[_], value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _joined(value) or [value]
        case ast.AugAssign(value=value):
            return list(value.elts) if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


def _joined(value: ast.expr) -> list[ast.expr]:
    """`xs + [v]`, `[*xs, v]`: the new elements alone."""
    match value:
        case ast.BinOp(op=ast.Add(), right=ast.List(elts=elts)):
            return elts
        case ast.List(elts=[ast.Starred(), *elts]) | ast.Tuple(elts=[ast.Starred(), *elts]):
            return elts
    return []


def _levels(statement: ast.stmt) -> int:
    """How deep below the name the statement stores: 1 for `rows[k].append(x)`, 0 for `rows[k] = x`
    and `rows.append(x)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder))):
            inner, levels = holder, 0
        case ast.Assign(targets=[ast.Subscript(value=holder)]):
            inner, levels = holder, 0
        case ast.AugAssign(target=ast.Subscript(value=holder), value=value):
            inner, levels = holder, int(isinstance(value, ast.List | ast.Tuple))
        case _:
            return 0
    while True:
        match inner:
            case ast.Subscript(value=holder) | ast.Call(func=ast.Attribute(value=holder)):
                inner, levels = holder, levels + 1
            case _:
                return levels


def _is_stored_in_what_grows(keeping: Keeping) -> bool:
    """`rows[k].append(x)` stores in a row: that has to be what grows, and not `rows`."""
    named, path = keeping.suspect.named, keeping.holding.path
    root = root_of(keeping)
    if named is None or root is None:
        return False
    if keeping.program.file(named.file) is None:
        return True  # a library's: what it does with its arguments is its own business
    levels = _levels(keeping.statement)
    return keeping.holding.grows_at - path.index(named) == levels


def parts_that_keep(keeping: Keeping, field: str = "") -> list[ast.expr]:
    """Of what is stored, the tensors or arrays themselves; empty where that is not clear.

    `field` is the attribute of the kept object that leads to it, where the run saw one."""
    parts = kept_parts(keeping) if _is_stored_in_what_grows(keeping) else []
    found: list[ast.expr] = []
    for part in parts:
        inner = list(_inside(keeping, part, field))
        if part in inner and not _is_bare(keeping):
            return []  # the item is no tensor, and its parts are not written here
        found += inner
    candidates = [one for one in found if not is_cut(keeping.module, one)]
    if len(candidates) > 1:
        known = _made_names(keeping)
        candidates = [
            one
            for one in candidates
            if is_surely_tensor(keeping.module, one) or last_name(one) in known
        ]
    if any(may_be_plain(keeping.program, keeping.module, one) for one in candidates):
        return []
    return candidates


def _is_bare(keeping: Keeping) -> bool:
    """The item is a tensor or array itself."""
    kind = keeping.item_type
    return is_tensor(kind) or kind in ("ndarray", "memmap") or keeping.holding.kind == "graph"


def _inside(keeping: Keeping, part: ast.expr, field: str) -> Iterator[ast.expr]:
    match part:
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for one in elts:
                yield from _inside(keeping, one, "")
        case ast.Dict(values=values):
            for one in values:
                yield from _inside(keeping, one, "")
        case ast.Call(func=func) if last_name(func) == keeping.item_type and field:
            yield from _given(keeping, part, field)
        case ast.Starred() | ast.Constant() | ast.JoinedStr() | ast.Lambda():
            return
        case _:
            yield part


def _given(keeping: Keeping, call: ast.Call, field: str) -> Iterator[ast.expr]:
    """The argument for a field: `crop` in `Detection(number, crop)`."""
    for keyword in call.keywords:
        if keyword.arg == field:
            yield keyword.value
    names = _fields(keeping.program, last_name(call.func))
    for name, value in zip(names, call.args, strict=False):
        if name == field and not isinstance(value, ast.Starred):
            yield value


def _fields(program: Program, class_name: str) -> list[str]:
    """Of a dataclass or named tuple of the program, in their order; else those of `__init__`."""
    for owner in program.classes.get(class_name, ()):
        node = owner.node
        assert isinstance(node, ast.ClassDef)
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                return [arg.arg for arg in one.args.args[1:]]
        return [
            one.target.id
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
    return []


def _made_names(keeping: Keeping) -> set[str]:
    """Variables that hold what the line of the maker made."""
    site = keeping.suspect.site
    module = keeping.program.file(site.file) if site is not None else None
    made = statement_at(module, site.line) if site is not None and module is not None else None
    return set(assigned_by(made)) if made is not None else set()
