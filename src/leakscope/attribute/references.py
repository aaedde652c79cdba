"""A name in, the places that refer to it out: by itself, by an alias, through a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from leakscope.attribute.program import Module, Program, Scope, enclosing_class, last_name
from leakscope.model import Link

SAME, NEAR, HERE, AWAY = range(4)
"""How near a reference is: the same class or function, a subclass or an inferred instance, an
object nobody can tell in the same file, one in another file."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that refers to the thing that grows."""

    name: str
    owner: Scope | None
    """Of a variable: the scope it belongs to. Of an attribute: its class, where that is known."""
    kind: str
    """name, attribute, or self: the object is its own container."""
    hops: int = 0
    """How many calls and stores lie between it and the name that was asked for."""
    bound_line: int = 0
    """Of an alias: the binding that makes it one. 0 for the name that was asked for."""
    calls_for: str = ""
    """`method`: it is a bound `append`. `getter`: calling it returns the thing."""
    home: Module | None = None
    """File of the class, where only that is known."""
    class_name: str = ""
    """Of an attribute whose class is a library's: what that is called."""
    near: int = SAME
    is_item: bool = False
    """It refers to something inside, not to the thing itself."""
    is_origin: bool = False
    """An alias that was there first: `rows` in `self.N = rows`."""

    @property
    def is_alias(self) -> bool:
        return self.bound_line > 0


_VARIABLES = frozenset({"global", "local", "closure", "default", "generator", "traceback"})


def target_of(program: Program, link: Link) -> Target | None:
    """What the link's name is in the source: a variable of a scope, or an attribute of a class."""
    module = program.file(link.file)
    is_foreign = bool(link.file) and module is None
    scope = without_comprehensions(link.scope)
    owner = program.scope("class", scope, module, link.line) if scope and not is_foreign else None
    is_variable = link.kind in _VARIABLES or (link.kind not in {"attribute", "class"} and not owner)
    if not is_variable:
        name = scope.rpartition(".")[2]
        return Target(link.name, owner, "attribute", home=module, class_name=name)
    if is_foreign:
        return None  # a variable of a library's function: its `main` is not the user's
    if not scope:
        return Target(link.name, module.scope, "name") if module is not None else None
    function = program.scope("function", scope, module, link.line) or program.scope(
        "lambda", scope, module, link.line
    )
    if function is None:
        return None
    # A closure's variable belongs to a function further out.
    return Target(link.name, function.resolve(link.name), "name")


def without_comprehensions(scope: str) -> str:
    for part in ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"):
        scope = scope.removesuffix(f".<locals>.{part}")
    return "" if scope == "<module>" else scope


@dataclass(frozen=True, slots=True)
class Reference:
    node: ast.expr
    module: Module
    near: int


def references(program: Program, target: Target) -> Iterator[Reference]:
    """Everything in the source that reads or writes the target."""
    if target.kind == "name":
        yield from _variables(program, target)
    elif target.kind == "self":
        yield from _selves(program, target)
    else:
        yield from _attributes(program, target)


def _variables(program: Program, target: Target) -> Iterator[Reference]:
    owner = target.owner
    assert owner is not None
    for node in owner.module.names.get(target.name, ()):
        scope = owner.module.scope_of[node]
        if scope.resolve(target.name) is owner and _is_bound(target, owner, node, scope):
            yield Reference(node, owner.module, target.near)
    if owner.kind == "module" and not target.is_alias:
        yield from _imported(program, target.name, owner.module)


def _is_bound(target: Target, owner: Scope, node: ast.Name, scope: Scope) -> bool:
    """An alias counts from its binding to the next one; inside inner functions, always."""
    if not target.is_alias or scope.function is not owner.function:
        return True
    before = [line for line in owner.bound_at[target.name] if line <= node.lineno]
    return not before or max(before) == target.bound_line


def _imported(program: Program, name: str, home: Module) -> Iterator[Reference]:
    """A module's global in other files: `from state import HISTORY`, `state.HISTORY`."""
    path = PurePosixPath(home.file)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    for module in program.modules:
        if module is home:
            continue
        for scope in module.scopes:
            for alias, (source, original) in scope.imports.items():
                if (source, original) == (stem, name):
                    for node in module.names.get(alias, ()):
                        if module.scope_of[node].resolve(alias) is scope:
                            yield Reference(node, module, NEAR)
        for attribute in module.attributes.get(name, ()):
            if stem in _module_named(attribute.value, module.scope_of[attribute]):
                yield Reference(attribute, module, NEAR)


def _module_named(node: ast.expr, scope: Scope) -> tuple[str, ...]:
    """What an imported name stands for: the module itself, or a module of a package."""
    if isinstance(node, ast.Name):
        return scope.resolve(node.id).imports.get(node.id, ())
    return (node.attr,) if isinstance(node, ast.Attribute) else ()


def _attributes(program: Program, target: Target) -> Iterator[Reference]:
    related = Related(program, target)
    for module in program.modules:
        for node in module.attributes.get(target.name, ()):
            near = related.nearness(node.value, module.scope_of[node], module)
            if near is not None:
                yield Reference(node, module, max(near, target.near))
        for call in module.calls.get("getattr", ()):
            if named_by_text(call, target.name):
                near = related.nearness(call.args[0], module.scope_of[call], module)
                if near is not None:
                    yield Reference(call, module, max(near, target.near))
        for name in module.names.get(target.name, ()):
            owner = module.scope_of[name].resolve(target.name)
            if owner.kind == "class" and owner in related.family:
                yield Reference(name, module, target.near)


def _selves(program: Program, target: Target) -> Iterator[Reference]:
    """`self` and `super()` in the methods of a class that is a container itself."""
    assert target.owner is not None
    family = program.ancestors(target.owner)
    for module in {scope.module for scope in family}:
        for name in [n for names in list(module.names.values()) for n in names]:
            if program.class_of_self(name.id, module.scope_of[name]) in family:
                yield Reference(name, module, target.near)
        for call in module.calls.get("super", ()):
            if enclosing_class(module.scope_of[call]) in family:
                yield Reference(call, module, target.near)


def named_by_text(call: ast.Call, name: str) -> bool:
    """`getattr(x, "name")`, `setattr(x, "name", …)`."""
    match call.args:
        case [_, ast.Constant(value=str(text)), *_]:
            return text == name
    return False


class Related:
    """Tells whose attribute `x.name` is, as far as the source says."""

    def __init__(self, program: Program, target: Target) -> None:
        self._program = program
        self._owner = target.owner
        self._home = target.home
        self._class_name = target.class_name
        self.family = program.ancestors(target.owner) if target.owner else set[Scope]()

    def nearness(self, receiver: ast.expr, scope: Scope, module: Module) -> int | None:
        """How near `receiver` is to the class asked about; None if it is another class."""
        if self._is_module(receiver, scope):
            return None  # a module's global, not an attribute
        classes = self._program.classes_of(receiver, scope)
        if not classes:
            return HERE if module is self._home else AWAY
        if self._owner is None:
            name = self._class_name
            is_kin = not name or any(self._program.may_derive_from(c, name) for c in classes)
            return AWAY if is_kin else None
        near = [self._kinship(one) for one in classes]
        is_self = isinstance(receiver, ast.Name) and self._is_self(receiver, scope)
        known = [n if is_self else max(n, NEAR) for n in near if n is not None]
        return min(known, default=None)

    def _is_module(self, receiver: ast.expr, scope: Scope) -> bool:
        if not isinstance(receiver, ast.Name) or receiver.id in self._program.classes:
            return False
        imported = scope.resolve(receiver.id).imports.get(receiver.id)
        return imported is not None and not imported[1]

    def _is_self(self, receiver: ast.Name, scope: Scope) -> bool:
        return self._program.class_of_self(receiver.id, scope) is not None

    def _kinship(self, one: Scope) -> int | None:
        if one in self.family:
            return SAME
        return NEAR if self._owner in self._program.ancestors(one) else None


def arguments_for(
    program: Program, function: Scope, parameter: str
) -> Iterator[tuple[ast.expr, Module]]:
    """What the program's calls of a function hand it for a parameter."""
    owner = function.parent
    is_method = owner is not None and owner.kind == "class"
    is_made = is_method and function.name == "__init__"
    names = function.parameters[1:] if is_method else function.parameters
    callee = owner.name if is_made and owner is not None else function.name
    for module in program.modules:
        for call in (*module.calls.get(callee, ()), *_threads(module, callee)):
            _, args = _called_by(call)
            for keyword in call.keywords:
                if keyword.arg == parameter:
                    yield keyword.value, module
            for name, value in zip(names, args, strict=False):
                if name == parameter and not isinstance(value, ast.Starred):
                    yield value, module


def _threads(module: Module, function: str) -> Iterator[ast.Call]:
    for kind in ("Thread", "Process", "Timer"):
        for call in module.calls.get(kind, ()):
            called, _ = _called_by(call)
            if called is not call.func and last_name(called) == function:
                yield call


def _called_by(call: ast.Call) -> tuple[ast.expr, list[ast.expr]]:
    """What a call runs with which arguments; `Thread(target=f, args=(x,))` runs f(x)."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    args = given.get("args")
    if "target" in given:
        return given["target"], args.elts if isinstance(args, ast.Tuple | ast.List) else []
    return call.func, call.args


# Calls that call another function for you: which argument it is, and where its own begin.
_CALLERS = {"submit": 0, "partial": 0, "apply_async": 0, "run_in_executor": 1, "spawn": 0}


def parameters_for(
    program: Program, call: ast.Call, value: ast.expr, module: Module
) -> Iterator[tuple[str, Scope]]:
    """Parameters of the program's functions that receive `value` in a call."""
    scope = module.scope_of[call]
    called, args = _called_by(call)
    if (at := _CALLERS.get(last_name(called))) is not None and value in args[at + 1 :]:
        called, args = args[at], args[at + 1 :]
    for function in _called(program, called, scope):
        names = function.parameters
        if function.parent is not None and function.parent.kind == "class":
            names = names[1:]
        for name, arg in zip(names, args, strict=False):
            if arg is value:
                yield name, function
        for keyword in call.keywords:
            if keyword.value is value and keyword.arg in function.bound_at:
                yield keyword.arg, function


_MOST_METHODS = 3
"""A method of unknown class is looked up by name, while so few have it that this says something."""


def _called(program: Program, called: ast.expr, scope: Scope) -> list[Scope]:
    name = last_name(called)
    made = [
        function
        for owner in program.classes.get(name, ())
        for function in program.functions.get("__init__", ())
        if function.parent is owner
    ]
    if made:
        return made
    functions = program.functions.get(name, [])
    if isinstance(called, ast.Name):
        return [f for f in functions if f.parent is None or f.parent.kind != "class"]
    if not isinstance(called, ast.Attribute):
        return []
    owners = program.classes_of(called.value, scope)
    if owners:
        family = {one for owner in owners for one in program.ancestors(owner)}
        return [f for f in functions if f.parent in family]
    return functions if len(functions) <= _MOST_METHODS else []


def stores_of(module: Module, text: str) -> Iterable[ast.Call]:
    """Calls that set an attribute by its name as text."""
    for name in ("setattr", "__setattr__"):
        for call in module.calls.get(name, ()):
            if named_by_text(call, text):
                yield call
    for name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        for call in module.calls.get(name, ()):
            match call.args:
                case [ast.Constant(value=str(given)), _, *_] if given == text:
                    yield call
