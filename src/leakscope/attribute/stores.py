"""References in, stores out: the statements that put something where a name refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from leakscope.attribute.forms import (
    ACCESS,
    ADD,
    HARMLESS,
    Form,
    adds_to_first,
    form_of_call,
    form_of_rebind,
    is_empty,
    is_fixed,
    is_reached,
)
from leakscope.attribute.program import Function, Module, Program, Scope, last_name
from leakscope.attribute.references import (
    Reference,
    Related,
    Target,
    arguments_for,
    parameters_for,
    references,
    stores_of,
)


@dataclass(frozen=True, slots=True)
class Store:
    """One statement that may be the one looked for."""

    form: Form
    node: ast.AST
    module: Module
    near: int
    hops: int
    through_attributes: int = 0
    value: ast.expr | None = None
    is_alias: bool = False
    is_origin: bool = False


_WALKING = frozenset({"enumerate", "zip", "reversed", "iter", "sorted"})

_MOST_HOPS = 2
_MOST_TARGETS = 60


def stores(program: Program, target: Target) -> Iterator[Store]:
    """Everything that stores under the target, its aliases, and the parameters it is handed to."""
    todo, seen = [target], {target}
    while todo:
        one = todo.pop()
        for found in _stores_of(program, one):
            if isinstance(found, Store):
                yield found
            elif found not in seen and found.hops <= _MOST_HOPS and len(seen) < _MOST_TARGETS:
                seen.add(found)
                todo.append(found)


def _stores_of(program: Program, target: Target) -> Iterator[Store | Target]:
    by_module: dict[Module, list[Reference]] = {}
    for reference in references(program, target):
        by_module.setdefault(reference.module, []).append(reference)
    for found in by_module.values():
        same = {reference.node for reference in found}
        for reference in found:
            yield from _Climb(program, target, reference, same).run()
    if target.kind == "attribute":
        yield from _stores_by_text(program, target)
    yield from _from_callers(program, target)


def _stores_by_text(program: Program, target: Target) -> Iterator[Store]:
    related = Related(program, target)
    for module in program.modules:
        for call in stores_of(module, target.name):
            is_method = isinstance(call.func, ast.Attribute) and len(call.args) == 2
            receiver = call.func.value if is_method else call.args[0]  # type: ignore[attr-defined]
            near = related.nearness(receiver, module.scope_of[call], module)
            if near is not None:
                value = call.args[-1]
                form = form_of_rebind(value, set(), module)
                if form is not None:
                    yield Store(form, call, module, near, target.hops, value=value)


def _from_callers(program: Program, target: Target) -> Iterator[Store | Target]:
    """A parameter is whatever the callers hand over."""
    owner = target.owner
    if target.kind != "name" or owner is None or not isinstance(owner.node, Function):
        return
    if target.name not in owner.parameters:
        return
    for value, module in arguments_for(program, owner, target.name):
        if isinstance(value, ast.Name):
            caller = module.scope_of[value].resolve(value.id)
            line = _binding_line(caller, value)
            given = Target(value.id, caller, "name", target.hops + 1, line, near=target.near)
            yield replace(given, is_origin=True)
            if _is_arguments(module.parent[value], module):  # a thread's frame keeps its own
                yield Store(Form.GIVEN, value, module, target.near, target.hops)
        elif isinstance(value, ast.Call | ast.GeneratorExp | ast.ListComp | ast.DictComp):
            form = Form.EMPTY if is_empty(value) else Form.SET
            yield Store(form, value, module, target.near, target.hops + 1, value=value)


class _Climb:
    """From one reference up through the expression around it, to what is done with it."""

    def __init__(
        self, program: Program, target: Target, reference: Reference, same: set[ast.expr]
    ) -> None:
        self._program = program
        self._target = target
        self._module = reference.module
        self._near = reference.near
        self._same = same
        self._node: ast.AST = reference.node
        self._items = 0
        self._attributes = 0

    def run(self) -> Iterator[Store | Target]:
        if self._target.calls_for and not self._step_into_call():
            yield from self._handed_on()
            return
        if self._target.calls_for == "method":
            yield self._store(Form.ADD, self._node)
            return
        while True:
            up = self._module.parent.get(self._node)
            if isinstance(up, ast.Subscript) and up.value is self._node:
                if not isinstance(up.ctx, ast.Load):
                    yield from self._item(up)
                    return
                self._node, self._items = up, self._items + 1
            elif isinstance(up, ast.Attribute) and up.value is self._node:
                yield from self._member(up)
                if self._node is not up and self._node is not self._module.parent.get(up):
                    return
            elif isinstance(up, ast.IfExp | ast.BoolOp | ast.Await | ast.Starred):
                self._node = up
            elif isinstance(up, ast.NamedExpr) and up.value is self._node:
                yield from self._alias([up.target])
                self._node = up
            else:
                yield from self._context(up)
                return

    def _store(self, form: Form, node: ast.AST, value: ast.expr | None = None) -> Store:
        target = self._target
        return Store(
            form, node, self._module, self._near, target.hops, self._attributes, value,
            target.is_alias, target.is_origin,
        )  # fmt: skip

    def _step_into_call(self) -> bool:
        call = self._module.parent.get(self._node)
        if isinstance(call, ast.Call) and call.func is self._node:
            self._node = call
            return True
        return False

    def _handed_on(self) -> Iterator[Store]:
        """`hook = acts.append` … `register_hook(hook)`."""
        call = self._module.parent.get(self._node)
        if self._target.calls_for == "method" and isinstance(call, ast.Call | ast.keyword):
            yield self._store(Form.ADD, call)

    def _item(self, item: ast.Subscript) -> Iterator[Store]:
        """`N[k] = x`, `N[k] += x`, `N[a:b] = x`; deleting is not storing."""
        if isinstance(item.ctx, ast.Del):
            return
        stored = self._module.parent[item]
        while isinstance(stored, ast.Tuple | ast.List | ast.Starred):
            stored = self._module.parent[stored]
        value = getattr(stored, "value", None)
        is_more = isinstance(stored, ast.AugAssign) or (
            isinstance(value, ast.expr) and is_reached(value, self._same, self._module)
        )
        if is_more:
            yield self._store(Form.ITEM_MORE, stored, value)
        elif is_fixed(item.slice):
            yield self._store(Form.FIXED_ITEM, stored, value)
        else:
            yield self._store(Form.ITEM, stored, value)

    def _member(self, member: ast.Attribute) -> Iterator[Store | Target]:
        """`N.append(x)`, `N.get(k)…`, `N.values…`, `out = N.append`."""
        call = self._module.parent.get(member)
        name = member.attr
        is_called = isinstance(call, ast.Call) and call.func is member
        if is_called and isinstance(call, ast.Call):
            form = form_of_call(call, name)
            if form is not None:
                yield self._store(form, call, call.args[0] if call.args else None)
            if name in ACCESS:
                self._node, self._items = call, self._items + 1
        elif not isinstance(member.ctx, ast.Load):
            return
        elif name in ADD:
            yield from self._bound_method(member)
        else:
            self._node, self._attributes = member, self._attributes + 1

    def _bound_method(self, member: ast.Attribute) -> Iterator[Store | Target]:
        up = self._module.parent[member]
        if isinstance(up, ast.Assign):
            for target in self._alias_targets(up.targets):
                yield replace(target, calls_for="method")
        elif isinstance(up, ast.Call | ast.keyword):
            yield self._store(Form.ADD, up)

    def _context(self, up: ast.AST | None) -> Iterator[Store | Target]:
        node = self._node
        match up:
            case ast.AugAssign() if up.target is node:
                if not self._items and not self._target.is_item:
                    yield self._store(Form.MORE, up, up.value)
            case ast.Assign() if node in up.targets:
                yield from self._rebind(up, up.value)
            case ast.Assign():
                yield from self._alias(up.targets)
            case ast.AnnAssign() if up.target is node:
                if up.value is not None:
                    yield from self._rebind(up, up.value)
            case ast.AnnAssign():
                yield from self._alias([up.target])
            case ast.NamedExpr():
                yield from self._rebind(up, up.value)
            case ast.Tuple() | ast.List() if isinstance(up.ctx, ast.Store):
                yield from self._unpacked(up)
            case ast.Tuple() | ast.List() if _is_arguments(up, self._module):
                call = self._module.parent[self._module.parent[up]]
                if isinstance(call, ast.Call):
                    yield from self._argument(call, node)
            case ast.Call() if last_name(up.func) in _WALKING and node in up.args:
                self._node = up
                yield from self._context(self._module.parent.get(up))
            case ast.withitem() if up.optional_vars is node:
                yield from self._rebind(up, up.context_expr)
            case ast.For() | ast.AsyncFor() | ast.comprehension() if up.iter is node:
                yield from self._loop_variables(up.target)
            case ast.Call():
                yield from self._argument(up, node)
            case ast.keyword():
                call = self._module.parent[up]
                if isinstance(call, ast.Call):
                    yield from self._argument(call, node)
            case ast.Return():
                yield from self._returned()

    def _rebind(self, at: ast.AST, value: ast.expr) -> Iterator[Store | Target]:
        if self._target.kind == "self":
            return
        form = form_of_rebind(value, self._same, self._module)
        if form is not None:
            yield self._store(form, at, value)
        if isinstance(value, ast.Name):
            # `self.N = rows`: what is done to `rows` in this function is done to N.
            for origin in self._alias_targets([value]):
                yield replace(origin, is_origin=True)
        if isinstance(at, ast.Assign) and len(at.targets) > 1:
            yield from self._alias(at.targets)

    def _unpacked(self, up: ast.AST) -> Iterator[Store | Target]:
        """`out, N = rnn(x, N)`."""
        while isinstance(up, ast.Tuple | ast.List | ast.Starred):
            up = self._module.parent[up]
        if isinstance(up, ast.Assign):
            form = form_of_rebind(up.value, self._same, self._module)
            if form is not None:
                yield self._store(form, up, up.value)

    def _alias(self, targets: list[ast.expr]) -> Iterator[Target]:
        yield from self._alias_targets(targets)

    def _alias_targets(self, targets: list[ast.expr]) -> Iterator[Target]:
        """The other names that the thing has from here on."""
        hops = self._target.hops
        for node in targets:
            if node in self._same:
                continue
            scope = self._module.scope_of[node]
            if isinstance(node, ast.Name):
                owner = scope.resolve(node.id)
                is_local = owner.kind not in {"module", "class"}
                line = _binding_line(owner, node)
                yield Target(
                    node.id,
                    owner,
                    "name",
                    hops if is_local else hops + 1,
                    line,
                    near=self._near,
                    is_item=self._items > 0 or self._target.is_item,
                )
            elif isinstance(node, ast.Attribute):
                owners = self._program.classes_of(node.value, scope)
                owner_class = owners[0] if owners else None
                if owner_class is not None:
                    yield Target(
                        node.attr, owner_class, "attribute", hops + 1, node.lineno, near=self._near
                    )

    def _loop_variables(self, target: ast.expr) -> Iterator[Target]:
        names = [target]
        if isinstance(target, ast.Tuple | ast.List):
            names = list(target.elts)
        self._items += 1
        yield from self._alias_targets([name for name in names if isinstance(name, ast.Name)])

    def _argument(self, call: ast.Call, node: ast.AST) -> Iterator[Store | Target]:
        if call.func is node or not isinstance(node, ast.expr):
            return
        name = last_name(call.func)
        if call.args and call.args[0] is node and adds_to_first(call.func, name):
            yield self._store(Form.ADD, call, call.args[-1])
            return
        found = False
        for parameter, function in parameters_for(self._program, call, node, self._module):
            found = True
            line = function.bound_at[parameter][0]
            hops = self._target.hops + 1
            yield Target(parameter, function, "name", hops, line, near=self._near)
        is_statement = isinstance(self._module.parent[call], ast.Expr)
        if _is_arguments(self._module.parent[node], self._module) or (
            not found and is_statement and name not in HARMLESS
        ):
            yield self._store(Form.GIVEN, call)

    def _returned(self) -> Iterator[Target]:
        """A function that returns the thing: a property, or a getter."""
        function = self._module.scope_of[self._node].function
        if function is None or not isinstance(function.node, Function) or self._target.is_alias:
            return
        owner = function.parent
        is_method = owner is not None and owner.kind == "class"
        is_property = any("property" in last_name(d) for d in function.node.decorator_list)
        yield Target(
            function.name,
            owner,
            "attribute" if is_method else "name",
            self._target.hops + 1,
            function.node.lineno,
            "" if is_property else "getter",
            near=self._near,
        )


def _is_arguments(node: ast.AST, module: Module) -> bool:
    """`Thread(target=f, args=(N, x))`."""
    up = module.parent.get(node)
    return isinstance(up, ast.keyword) and up.arg == "args"


def _binding_line(owner: Scope, node: ast.Name) -> int:
    before = [line for line in owner.bound_at.get(node.id, ()) if line <= node.lineno]
    return max(before, default=node.lineno)
