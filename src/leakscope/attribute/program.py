"""Source text in, scopes out: which name belongs to which function, class or module.

Nothing here recurses: a program may hold an expression thousands of operators deep.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, *_COMPREHENSIONS)


@dataclass(eq=False, slots=True)
class Scope:
    """A function, class or module, as far as names are concerned."""

    node: ast.AST
    module: Module
    kind: str
    """module, function, lambda, class or comprehension."""
    qualname: str
    parent: Scope | None
    bound_at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Lines where a name is bound."""
    values: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    """What a name is assigned, or annotated with."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`."""
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name → (last part of the module, name in it or empty)."""

    @property
    def name(self) -> str:
        return self.qualname.rpartition(".")[2]

    @property
    def function(self) -> Scope | None:
        """The nearest function with a name that this code is part of."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope

    @property
    def parameters(self) -> list[str]:
        node = self.node
        if not isinstance(node, Function | ast.Lambda):
            return []
        return [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]

    def resolve(self, name: str) -> Scope:
        """The scope that the name belongs to when it is read or written here."""
        scope: Scope | None = self
        is_inner = False
        while scope is not None and scope.kind != "module":
            where = scope.elsewhere.get(name)
            if where == "global":
                break
            # A class body is no enclosing scope for its methods.
            if (
                where is None
                and name in scope.bound_at
                and not (is_inner and scope.kind == "class")
            ):
                return scope
            is_inner = True
            scope = scope.parent
        return self.module.scope


class Module:
    """One file: its tree, and where each name, attribute and call in it is."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        # The parser knows three line ends; str.splitlines knows eleven.
        self.lines = re.split(r"\r\n|\r|\n", text)
        self.tree = _parse(text)
        self.scope = Scope(self.tree, self, "module", "", None)
        self.scopes = [self.scope]
        self.scope_of: dict[ast.AST, Scope] = {self.tree: self.scope}
        self.parent: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, list[ast.Name]] = defaultdict(list)
        self.attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        self.calls: dict[str, list[ast.Call]] = defaultdict(list)
        """By the last part of what is called."""
        self._read()

    def _read(self) -> None:
        todo: list[tuple[ast.AST, Scope]] = [(self.tree, self.scope)]
        while todo:
            node, scope = todo.pop()
            self.scope_of[node] = scope
            self._index(node, scope)
            _bind(node, scope, self.parent.get(node))
            for child, inner in self._children(node, scope):
                self.parent[child] = node
                todo.append((child, inner))

    def _index(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name):
            self.names[node.id].append(node)
        elif isinstance(node, ast.Attribute):
            self.attributes[_mangled(node.attr, scope)].append(node)
        elif isinstance(node, ast.Call):
            self.calls[last_name(node.func)].append(node)

    def _children(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        inner, outside = scope, set[ast.AST]()
        if isinstance(node, Function):
            inner = self._open(node, "function", node.name, scope)
            outside = {*node.decorator_list, *([node.returns] if node.returns else [])}
        elif isinstance(node, ast.ClassDef):
            inner = self._open(node, "class", node.name, scope)
            outside = {*node.decorator_list, *node.bases, *node.keywords}
        elif isinstance(node, ast.Lambda):
            inner = self._open(node, "lambda", "<lambda>", scope)
        elif isinstance(node, _COMPREHENSIONS):
            inner = self._open(node, "comprehension", "", scope)
            self.parent[node.generators[0].iter] = node.generators[0]
        elif isinstance(node, ast.arguments):
            # Defaults are evaluated where the function is defined.
            outside = {*node.defaults, *(d for d in node.kw_defaults if d is not None)}
        elif isinstance(node, ast.comprehension):
            first = self.parent[node]
            if isinstance(first, _COMPREHENSIONS) and first.generators[0] is node:
                outside = {node.iter}
        for child in ast.iter_child_nodes(node):
            if child in outside:
                yield child, (scope if inner is not scope else scope.parent or scope)
            else:
                yield child, inner

    def _open(self, node: ast.AST, kind: str, name: str, parent: Scope) -> Scope:
        qualname = _prefix(parent) + name if name else parent.qualname
        scope = Scope(node, self, kind, qualname, parent)
        self.scopes.append(scope)
        return scope

    def statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def is_in_loop(self, node: ast.AST) -> bool:
        """Inside a loop of its own function."""
        while (up := self.parent.get(node)) is not None:
            if isinstance(up, _LOOPS):
                return True
            if isinstance(up, Function | ast.Lambda | ast.ClassDef):
                return False
            node = up
        return False

    def source(self, line: int) -> str:
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"\d"` in their source is not our business
        return ast.parse(text)


def _prefix(scope: Scope) -> str:
    if scope.kind == "module":
        return ""
    if scope.kind == "comprehension" and scope.parent is not None:
        return _prefix(scope.parent)
    return f"{scope.qualname}." if scope.kind == "class" else f"{scope.qualname}.<locals>."


def _mangled(attr: str, scope: Scope) -> str:
    """`self.__x` in class C is stored as `_C__x`."""
    if not attr.startswith("__") or attr.endswith("__"):
        return attr
    owner = enclosing_class(scope)
    return attr if owner is None else f"_{owner.name.lstrip('_')}{attr}"


def enclosing_class(scope: Scope) -> Scope | None:
    inner: Scope | None = scope
    while inner is not None and inner.kind != "class":
        inner = inner.parent
    return inner


def last_name(node: ast.AST) -> str:
    """`torch.nn.Linear` → `Linear`; empty where an expression has no name."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _bind(node: ast.AST, scope: Scope, parent: ast.AST | None) -> None:
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            owner: Scope = scope
            if isinstance(parent, ast.NamedExpr):  # := reaches out of a comprehension
                while owner.kind == "comprehension" and owner.parent is not None:
                    owner = owner.parent
            owner.bound_at[node.id].append(node.lineno)
        case ast.arg():
            scope.bound_at[node.arg].append(node.lineno)
            if node.annotation is not None:
                scope.values[node.arg].append(node.annotation)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            scope.bound_at[node.name].append(node.lineno)
        case ast.Import() | ast.ImportFrom():
            _bind_imports(node, scope)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            scope.bound_at[name].append(node.lineno)
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            scope.bound_at[name].append(node.lineno)
        case ast.Global() | ast.Nonlocal():
            where = "global" if isinstance(node, ast.Global) else "nonlocal"
            scope.elsewhere.update(dict.fromkeys(node.names, where))
        case ast.Assign():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    scope.values[target.id].append(node.value)
        case ast.AnnAssign(target=ast.Name(id=name)):
            scope.values[name].append(node.annotation)


def _bind_imports(node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        scope.bound_at[name].append(node.lineno)
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").rpartition(".")[2]
            scope.imports[name] = (module, alias.name)
        else:
            scope.imports[name] = ((alias.name if alias.asname else name).rpartition(".")[2], "")


@lru_cache(maxsize=256)
def _module(file: str, text: str) -> Module | None:
    try:
        return Module(file, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Program:
    """The files of a program, read together."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        read = (_module(file, text) for file, text in sources.items())
        self.modules = [module for module in read if module is not None]
        self.functions: dict[str, list[Scope]] = defaultdict(list)
        self.classes: dict[str, list[Scope]] = defaultdict(list)
        for module in self.modules:
            for scope in module.scopes:
                if scope.kind == "function":
                    self.functions[scope.name].append(scope)
                elif scope.kind == "class":
                    self.classes[scope.name].append(scope)

    def file(self, file: str) -> Module | None:
        """The file of that path; how much of the path was recorded may differ."""
        if not file:
            return None
        for module in self.modules:
            if module.file == file:
                return module
        tail = f"/{PurePosixPath(file).name}"
        same = [
            module
            for module in self.modules
            if f"/{module.file}".endswith(f"/{file}") or f"/{file}".endswith(f"/{module.file}")
        ] or [module for module in self.modules if f"/{module.file}".endswith(tail)]
        return same[0] if len(same) == 1 else None

    def scope(self, kind: str, qualname: str, module: Module | None, line: int) -> Scope | None:
        """The function or class of that name; of several, the one nearest to the line."""
        modules = self.modules if module is None else [module]
        scopes = [scope for m in modules for scope in m.scopes if scope.kind == kind]
        same = [scope for scope in scopes if scope.qualname == qualname]
        if not same:
            name = qualname.rpartition(".")[2]
            same = [scope for scope in scopes if scope.name == name]
        return min(same, key=lambda s: abs(_line(s.node) - line), default=None)

    def ancestors(self, owner: Scope) -> set[Scope]:
        """The class and those it derives from, as far as their source is here."""
        found, todo = {owner}, [owner]
        while todo:
            node = todo.pop().node
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                fresh = set(self.classes.get(last_name(base), ())) - found
                found |= fresh
                todo += fresh
        return found

    def is_derived_from(self, owner: Scope, names: frozenset[str]) -> bool:
        return any(
            last_name(base) in names
            for scope in self.ancestors(owner)
            if isinstance(scope.node, ast.ClassDef)
            for base in scope.node.bases
        )

    def may_derive_from(self, owner: Scope, name: str) -> bool:
        """True if a class of that name is among its bases, or may be behind one not seen here."""
        bases = [
            last_name(base)
            for scope in self.ancestors(owner)
            if isinstance(scope.node, ast.ClassDef)
            for base in scope.node.bases
        ]
        return any(base == name or base not in self.classes for base in bases)

    def class_of_self(self, name: str, scope: Scope) -> Scope | None:
        """The class whose method has this name as its first parameter."""
        method = scope.resolve(name)
        owner = method.parent
        is_first = method.kind == "function" and method.parameters[:1] == [name]
        if not is_first or owner is None or owner.kind != "class" or _is_static(method.node):
            return None
        return owner

    def classes_of(self, node: ast.expr, scope: Scope) -> list[Scope]:
        """The classes that an expression may be an instance of; empty if nobody can tell."""
        match node:
            case ast.Name(id=name):
                if (own := self.class_of_self(name, scope)) is not None:
                    return [own]
                owner = scope.resolve(name)
                if name in self.classes and not owner.values.get(name):
                    return self.classes[name]
                return self._made_by(owner.values.get(name, []))
            case ast.Attribute(value=value, attr="__class__"):
                return self.classes_of(value, scope)
            case ast.Attribute(value=ast.Name() as value, attr=attr):
                if attr in self.classes:
                    return self.classes[attr]
                owners = self.classes_of(value, scope)
                return self._made_by(v for o in owners for v in _set_on(o, attr))
            case ast.Call(func=ast.Name(id="type"), args=[value]):
                return self.classes_of(value, scope)
            case ast.Call():
                return self._made_by([node])
        return []

    def _made_by(self, values: Iterator[ast.expr] | list[ast.expr]) -> list[Scope]:
        found: list[Scope] = []
        for value in values:
            maker = value.func if isinstance(value, ast.Call) else value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found += self.classes.get(value.value, [])
            found += self.classes.get(last_name(maker), [])
        return found


def _is_static(node: ast.AST) -> bool:
    return isinstance(node, Function) and any(
        last_name(decorator) == "staticmethod" for decorator in node.decorator_list
    )


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _set_on(owner: Scope, attr: str) -> Iterator[ast.expr]:
    """What methods of a class assign to `self.attr`."""
    module = owner.module
    for node in module.attributes.get(attr, ()):
        stored = module.parent[node]
        if enclosing_class(module.scope_of[node]) is owner and isinstance(stored, ast.Assign):
            yield stored.value
