"""A name in, whether a gradient may be asked for through what it holds.

Values are followed by name through the whole program, forwards and without regard to order. What
cannot be followed counts as reached: a change that is not made costs less than a wrong one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from leakscope.attribute.program import Function, Module, Program, Scope, last_name
from leakscope.attribute.references import (
    Target,
    arguments_for,
    parameters_for,
    references,
)
from leakscope.fix.switches import is_without_gradients

_CUTTING_METHODS = frozenset(
    {
        "detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "size",
        "dim", "numel", "__len__", "data_ptr", "element_size", "nelement", "long", "int", "bool",
        "isnan", "isfinite", "isinf", "eq", "ne", "gt", "lt", "ge", "le", "keys",
    }
)  # fmt: skip
"""What they return has no graph any more."""

_CUTTING_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "data", "is_leaf", "requires_grad", "grad_fn"}
)

_CUTTING_FUNCTIONS = frozenset(
    {
        "float", "int", "len", "print", "str", "repr", "bool", "isinstance", "type", "id", "range",
        "format", "hash", "pprint", "info", "debug", "warning", "error", "exception", "critical",
        "array", "asarray", "argmax", "argmin", "isnan", "isfinite", "equal", "allclose",
        "all", "any", "getsizeof", "set_description", "set_postfix", "add_scalar", "write", "plot",
        "savefig", "dumps", "dump", "argsort",
    }
)  # fmt: skip
"""Functions that only read numbers: what they return has no graph."""

ASKS = frozenset(
    {
        "backward", "grad", "scale", "manual_backward", "backward_", "jacobian", "hessian", "vjp",
        "jvp", "vhp", "hvp", "gradcheck", "grad_and_value", "minimize", "checkpoint", "step",
    }
)  # fmt: skip
"""Calls that ask for gradients of what they are given, or may do so."""

_STORING = frozenset(
    {
        "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault",
        "put", "put_nowait", "push", "__setitem__",
    }
)  # fmt: skip
_COPYING = frozenset(
    {
        "list", "tuple", "dict", "set", "zip", "enumerate", "reversed", "sorted", "iter", "next",
        "get", "pop", "popleft", "popitem", "values", "items", "copy", "deque", "islice", "chain",
        "map", "filter", "min", "max", "setdefault",
    }
)  # fmt: skip
"""Calls that hand on what they were given: also without gradients it keeps its graph."""

_ORDERING = frozenset({"max", "min", "sorted"})
"""Their `key` is compared, not handed on."""

_MOST = 3000


@dataclass(frozen=True, slots=True)
class _Variable:
    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: str


@dataclass(frozen=True, slots=True)
class _Result:
    """What calls of a function return."""

    function: Scope


_Place = _Variable | _Attribute | _Result


class _ReachedError(Exception):
    """A gradient may be asked for."""


def reaches_gradient(
    program: Program, target: Target | None, root: ast.expr, module: Module
) -> bool:
    """Whether anything computed from what is held may be asked for its gradient.

    Args:
        program: all sources there are.
        target: the holder, by the name that the run had for it.
        root: the holder, as the keeping statement says it.
        module: the file of that statement.
    """
    try:
        _Flow(program).run(target, root, module)
    except _ReachedError:
        return True
    return False


class _Flow:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: set[_Place] = set()
        self._todo: list[_Place] = []

    def run(self, target: Target | None, root: ast.expr, module: Module) -> None:
        self._mark_root(root, module)
        if not self._seen:
            raise _ReachedError
        for reference in references(self._program, target) if target is not None else ():
            self._origins(reference.node, reference.module)
            if _is_read(reference.node):
                self._follow(reference.node, reference.module)
        while self._todo:
            if len(self._seen) > _MOST:
                raise _ReachedError
            for node, module in list(self._reads(self._todo.pop())):
                self._follow(node, module)

    def _mark(self, place: _Place) -> None:
        if place not in self._seen:
            self._seen.add(place)
            self._todo.append(place)
            if isinstance(place, _Variable):
                self._given_by_callers(place)

    def _given_by_callers(self, variable: _Variable) -> None:
        """A parameter is another name for what the callers have."""
        scope = variable.scope
        if not isinstance(scope.node, Function) or variable.name not in scope.parameters:
            return
        for value, module in arguments_for(self._program, scope, variable.name):
            self._mark_root(value, module)

    def _origins(self, node: ast.expr, module: Module) -> None:
        """`N = rows`: what is done with `rows` is done with N."""
        up = module.parent.get(node)
        if isinstance(up, ast.Assign) and node in up.targets:
            if isinstance(up.value, ast.Name | ast.Attribute):
                self._mark_root(up.value, module)
            for other in up.targets:
                if other is not node:
                    self._assign(other, module)
        if isinstance(node, ast.Name):
            scope = module.scope_of[node].resolve(node.id)
            self._given_by_callers(_Variable(scope, node.id))

    def _reads(self, place: _Place) -> Iterator[tuple[ast.expr, Module]]:
        match place:
            case _Variable(scope, name):
                module = scope.module
                for node in module.names.get(name, ()):
                    if _is_read(node) and module.scope_of[node].resolve(name) is scope:
                        yield node, module
                if scope.kind == "module":
                    yield from self._imported(place)
            case _Attribute(name):
                for module in self._program.modules:
                    for attribute in module.attributes.get(name, ()):
                        if _is_read(attribute):
                            yield attribute, module
                    for call in module.calls.get("getattr", ()):
                        yield call, module
            case _Result(function):
                yield from self._calls_of(function)

    def _imported(self, place: _Variable) -> Iterator[tuple[ast.expr, Module]]:
        target = Target(place.name, place.scope, "name")
        for reference in references(self._program, target):
            if reference.module is not place.scope.module and _is_read(reference.node):
                yield reference.node, reference.module

    def _calls_of(self, function: Scope) -> Iterator[tuple[ast.expr, Module]]:
        """Where the function is called; a function that is used otherwise is called by others."""
        node = function.node
        if not isinstance(node, Function):
            raise _ReachedError
        is_method = function.parent is not None and function.parent.kind == "class"
        is_property = any("property" in last_name(one) for one in node.decorator_list)
        found = False
        for module in self._program.modules:
            named: list[ast.Name] = [] if is_method else module.names.get(function.name, [])
            for name in (*module.attributes.get(function.name, ()), *named):
                if not _is_read(name):
                    continue
                call = module.parent.get(name)
                is_called = isinstance(call, ast.Call) and call.func is name
                if not is_called and not is_property:
                    raise _ReachedError
                found = True
                yield (call if isinstance(call, ast.Call) and is_called else name), module
        if not found:
            raise _ReachedError  # a framework calls it: `training_step` returns a loss

    def _follow(self, node: ast.expr, module: Module) -> None:
        """Up from a value through the expression around it, to where it goes."""
        inner: ast.AST = node
        while True:
            up = module.parent.get(inner)
            if up is None or isinstance(up, ast.stmt):
                self._arrive(inner, up, module)
                return
            after = self._through(inner, up, module)
            if after is None:
                return
            inner = after

    def _through(self, inner: ast.AST, up: ast.AST, module: Module) -> ast.AST | None:
        """The larger value that this one is part of; None where it ends."""
        match up:
            case ast.Attribute(attr=name):
                if name in ASKS:
                    raise _ReachedError
                call = module.parent.get(up)
                is_method = isinstance(call, ast.Call) and call.func is up
                return (
                    None if name in (_CUTTING_METHODS if is_method else _CUTTING_ATTRIBUTES) else up
                )
            case ast.Call() if up.func is inner:
                return self._result(up, last_name(up.func), module)
            case ast.Call():
                return self._argument(inner, up, module)
            case ast.keyword():
                call = module.parent[up]
                assert isinstance(call, ast.Call | ast.ClassDef)
                if not isinstance(call, ast.Call):
                    raise _ReachedError
                return self._argument(inner, call, module)
            case ast.BinOp() | ast.UnaryOp():
                return None if is_without_gradients(module, up) else up
            case ast.Subscript():
                return up if up.value is inner else None
            case ast.IfExp():
                return None if up.test is inner else up
            case ast.Compare() | ast.FormattedValue() | ast.JoinedStr() | ast.Slice():
                return None
            case ast.comprehension():
                if up.iter is inner:
                    self._assign(up.target, module)
                return None
            case ast.NamedExpr():
                self._assign(up.target, module)
                return up
            case ast.Yield() | ast.YieldFrom():
                self._returned(up, module)
                return None
            case (
                ast.BoolOp() | ast.Starred() | ast.Tuple() | ast.List() | ast.Set() | ast.Dict()
                | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() | ast.Await()
            ):  # fmt: skip
                return up
            case ast.withitem():
                if up.optional_vars is not None:
                    self._assign(up.optional_vars, module)
                return None
        raise _ReachedError

    def _result(self, call: ast.Call, name: str, module: Module) -> ast.AST | None:
        """`x.method(…)`, `x(…)`: what comes of a method of the value."""
        if is_without_gradients(module, call) and name not in _COPYING:
            return None
        return call

    def _argument(self, value: ast.AST, call: ast.Call, module: Module) -> ast.AST | None:
        name = last_name(call.func)
        if name in ASKS:
            raise _ReachedError
        assert isinstance(value, ast.expr)
        if self._is_handed_to_function(call, name):
            raise _ReachedError
        known = False
        for parameter, function in parameters_for(self._program, call, value, module):
            known = True
            self._mark(_Variable(function, parameter))
        if name in _STORING and isinstance(call.func, ast.Attribute):
            self._mark_root(call.func.value, module)
        if known or name in _CUTTING_FUNCTIONS:
            return None
        is_dropped = isinstance(module.parent.get(call), ast.Expr)
        if is_dropped and isinstance(call.func, ast.Attribute):
            if name != "log":
                self._keep(call.func.value, module)
            return None
        if is_without_gradients(module, call) and name not in _COPYING:
            return None
        return call

    def _is_handed_to_function(self, call: ast.Call, name: str) -> bool:
        """`map(train_on, losses)`: what the other function does with it is not followed."""
        if name in _ORDERING:
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(
            isinstance(one, ast.Lambda)
            or (isinstance(one, ast.Name) and one.id in self._program.functions)
            for one in given
        )

    def _keep(self, receiver: ast.expr, module: Module) -> None:
        """A method of unknown source was given the value, and may keep it in its object."""
        if isinstance(receiver, ast.Name):
            scope = module.scope_of[receiver]
            if self._program.class_of_self(receiver.id, scope) is not None:
                raise _ReachedError
        self._mark_root(receiver, module)

    def _arrive(self, inner: ast.AST, statement: ast.AST | None, module: Module) -> None:
        match statement:
            case ast.Assign():
                for target in statement.targets if statement.value is inner else ():
                    self._assign(target, module)
            case ast.AnnAssign() | ast.AugAssign():
                if statement.value is inner:
                    self._assign(statement.target, module)
            case ast.For() | ast.AsyncFor():
                if statement.iter is inner:
                    self._assign(statement.target, module)
            case ast.Return():
                self._returned(statement, module)
            case ast.Expr() | ast.If() | ast.While() | ast.Assert() | ast.Delete() | ast.Raise():
                return
            case _:
                raise _ReachedError

    def _returned(self, node: ast.AST, module: Module) -> None:
        function = module.scope_of[node].function
        if function is None or module.scope_of[node].kind == "lambda":
            raise _ReachedError
        if not (is_without_gradients(module, node) and _is_computed(node)):
            self._mark(_Result(function))

    def _assign(self, target: ast.expr, module: Module) -> None:
        match target:
            case ast.Tuple() | ast.List():
                for one in target.elts:
                    self._assign(one, module)
            case ast.Starred(value=one):
                self._assign(one, module)
            case _:
                self._mark_root(target, module)

    def _mark_root(self, node: ast.expr, module: Module) -> None:
        """The variable or attribute that an expression is a part of."""
        while isinstance(node, ast.Subscript | ast.Call):
            inner = node.value if isinstance(node, ast.Subscript) else node.func
            if isinstance(node, ast.Call) and isinstance(inner, ast.Attribute):
                inner = inner.value  # `d.setdefault(k, [])`
            node = inner
        if isinstance(node, ast.Name):
            self._mark(_Variable(module.scope_of[node].resolve(node.id), node.id))
        elif isinstance(node, ast.Attribute):
            self._mark(_Attribute(node.attr))


def _is_read(node: ast.expr) -> bool:
    return not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)


def _is_computed(node: ast.AST) -> bool:
    """`return f(x)`, not `return x`: made here, and so without a graph where none are made."""
    value = node.value if isinstance(node, ast.Return | ast.Yield) else None
    if isinstance(value, ast.Call):
        return last_name(value.func) not in _COPYING
    return isinstance(value, ast.BinOp | ast.UnaryOp)
