"""An expression in, what it is out: a tensor with its graph, an array, a plain value, or unknown.

Asked of single expressions only. A name is followed to what was assigned to it last, a parameter to
the calls in the same file, a call to what the function returns. What cannot be followed is unknown,
and unknown is never told as a leak.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint import names
from leakscope.lint.kind import UNKNOWN, Kind, Known
from leakscope.lint.outline import Line, Outline, Scope, dotted, key_of, last_name, targets_of
from leakscope.lint.values import asks_for_gradients, keys_in, parts_of, returns_of, value_of

_DEEPEST = 24
"""Names and calls that are followed one after another."""


class Kinds:
    """The kinds of one file's expressions."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self._assigned: dict[Scope, dict[str, list[Line]]] = {}
        self._backward: dict[Scope, tuple[set[str], set[str]]] = {}
        self._known: dict[tuple[int, int], Known] = {}
        self._modules: dict[tuple[int, int], Known] = {}
        self._made: dict[tuple[int, int], Known] = {}
        self._off: dict[Scope, bool] = {}
        self._attributes: dict[Scope, dict[str, list[Line]]] = {}

    def of(self, node: ast.expr | None, line: Line, depth: int = 0) -> Known:
        """What this expression is where `line` stands."""
        if node is None or depth > _DEEPEST:
            return UNKNOWN
        place = (id(node), line.order)
        if place not in self._known:
            self._known[place] = UNKNOWN  # what leads back to itself says nothing
            self._known[place] = self._of(node, line, depth + 1)
        return self._known[place]

    def _of(self, node: ast.expr, line: Line, depth: int) -> Known:
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.Compare | ast.Lambda):
            return Known(Kind.PLAIN)
        if isinstance(node, ast.Name):
            return self._of_name(node.id, line, depth)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, line, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, line, depth)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._of_comprehension(node, line, depth)
        most = self._most(parts_of(node), line, depth)
        is_computed = isinstance(node, ast.BinOp | ast.UnaryOp)
        return self._computed(most, line) if is_computed else most

    def _of_comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        line: Line,
        depth: int,
    ) -> Known:
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        known = self.of(element, line, depth)
        is_operation = isinstance(element, ast.BinOp | ast.UnaryOp)
        if known.kind not in (Kind.UNKNOWN, Kind.PLAIN) or not isinstance(
            element, ast.Name | ast.BinOp | ast.UnaryOp | ast.Subscript
        ):
            return known
        most = self._most([one.iter for one in node.generators], line, depth)
        return self._computed(most, line) if is_operation else most

    def _computed(self, most: Known, line: Line) -> Known:
        """What an operation makes of it."""
        if most.kind is not Kind.LEAF:
            return most
        is_off = line.is_grad_off or self.is_off(line.scope)
        return Known(Kind.ARRAY if is_off else Kind.GRAPH, most.is_sure)

    def is_off(self, scope: Scope) -> bool:
        """Gradients are off in this function, by its own word or in all calls of it here."""
        if scope.is_grad_off:
            return True
        if scope not in self._off:
            self._off[scope] = False
            calls = self._call_sites(scope)
            self._off[scope] = bool(calls) and all(
                line.is_grad_off or self.is_off(line.scope) for line, _ in calls
            )
        return self._off[scope]

    def is_module(self, node: ast.expr, line: Line, depth: int = 0) -> Known:
        """Whether calling this runs a model: GRAPH if it does, UNKNOWN if nothing says so."""
        place = (id(node), line.order)
        if place not in self._modules:
            self._modules[place] = UNKNOWN
            self._modules[place] = self._is_module(node, line, depth + 1)
        return self._modules[place]

    def _is_module(self, node: ast.expr, line: Line, depth: int) -> Known:
        if depth > _DEEPEST:
            return UNKNOWN
        yes = Known(Kind.GRAPH)
        if isinstance(node, ast.Name):
            if node.id == "self" and line.scope.owner and self.is_module_class(line.scope.owner):
                return yes
            values = [one for one in self.values(node.id, line) if one is not None]
            for value, where in values:
                if (known := self._makes_module(value, where, depth)).kind is Kind.GRAPH:
                    return known
            if not values and (known := self._module_given(node.id, line, depth)).kind:
                return known
            is_local = bool(values) or node.id in {one.arg for one in line.scope.parameters}
            return self._by_name(node.id) if is_local or not values else UNKNOWN
        if isinstance(node, ast.Attribute):
            for value, where in self._attribute_values(node, line):
                if (known := self._makes_module(value, where, depth)).kind is Kind.GRAPH:
                    return known
            return self._by_name(node.attr)
        if isinstance(node, ast.Subscript):
            return self.is_module(node.value, line, depth)
        return self._makes_module(node, line, depth)

    def is_module_class(self, scope: Scope) -> bool:
        node = scope.node
        if not isinstance(node, ast.ClassDef) or not self.outline.has_torch:
            return False
        bases = {last_name(one) for one in node.bases}
        if bases & names.MODULE_BASES:
            return True
        above = [self.outline.classes[one] for one in bases if one in self.outline.classes]
        return any(one is not scope and self.is_module_class(one) for one in above)

    def backward_names(self, scope: Scope) -> set[str]:
        """Keys of what goes backward in this function, and of what that is computed from."""
        return self._backward_of(scope)[1]

    def _backward_of(self, scope: Scope) -> tuple[set[str], set[str]]:
        if scope not in self._backward:
            roots: set[str] = set()
            for line, call in self.outline.calls_of("backward"):
                if line.scope is scope:
                    if isinstance(call.func, ast.Attribute):
                        roots.update(keys_in(call.func.value))
                    for argument in call.args:  # accelerator.backward(loss)
                        roots.update(keys_in(argument))
            for line, call in self.outline.calls_of("grad"):
                if (
                    line.scope is scope
                    and dotted(call.func).endswith("autograd.grad")
                    and call.args
                ):
                    roots.update(keys_in(call.args[0]))
            behind = set(roots)
            for line in reversed(scope.lines):
                if isinstance(line.node, ast.Assign | ast.AugAssign):
                    made = {key_of(target) for target in targets_of(line.node)}
                    if made & behind:
                        behind.update(keys_in(line.node.value))
            self._backward[scope] = (roots, behind)
        return self._backward[scope]

    def assigned(self, scope: Scope) -> dict[str, list[Line]]:
        """Lines that assign a plain name, by name."""
        if scope not in self._assigned:
            found: dict[str, list[Line]] = {}
            for line in scope.lines:
                for target in targets_of(line.node):
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(line)
            self._assigned[scope] = found
        return self._assigned[scope]

    def _by_name(self, name: str) -> Known:
        is_like = self.outline.has_torch and names.MODULE_NAME.search(name)
        return Known(Kind.GRAPH, False) if is_like else UNKNOWN

    def _makes_module(self, node: ast.expr, line: Line, depth: int) -> Known:
        """Whether this expression is a model: one that is built, or a name for one."""
        if depth > _DEEPEST or not self.outline.has_torch:
            return UNKNOWN
        place = (id(node), line.order)
        if place not in self._made:
            self._made[place] = UNKNOWN
            self._made[place] = self._make_module(node, line, depth)
        return self._made[place]

    def _make_module(self, node: ast.expr, line: Line, depth: int) -> Known:
        if isinstance(node, ast.Name | ast.Attribute):
            return self.is_module(node, line, depth)
        if not isinstance(node, ast.Call):
            return UNKNOWN
        name, last = dotted(node.func), last_name(node.func)
        is_layer = name.startswith(("nn.", "torch.nn.")) and last[:1].isupper()
        if is_layer and not last.endswith(("Loss", "Parameter", "ParameterList")):
            return Known(Kind.GRAPH)
        if last in self.outline.classes and self.is_module_class(self.outline.classes[last]):
            return Known(Kind.GRAPH)
        if last in names.SAME_MODULE:
            if last in ("from_pretrained", "from_config"):
                is_model = "Model" in name or "For" in name
                return Known(Kind.GRAPH, False) if is_model else UNKNOWN
            inner = node.args[0] if node.args and not isinstance(node.func, ast.Attribute) else None
            if isinstance(node.func, ast.Attribute):
                inner = node.args[0] if name.startswith(("torch.", "nn.", "copy.")) and node.args \
                    else node.func.value  # fmt: skip
            return self._makes_module(inner, line, depth + 1) if inner is not None else UNKNOWN
        for scope in self._defined(last, node.func):
            for value, where in returns_of(scope):
                if (known := self._makes_module(value, where, depth + 1)).kind is Kind.GRAPH:
                    return known
        return UNKNOWN

    def _module_given(self, name: str, line: Line, depth: int) -> Known:
        """The parameter `name` is a model in some call of this function here."""
        for scope in line.scope.around():
            for parameter in scope.parameters:
                if parameter.arg == name:
                    for argument, where in self._arguments(scope, name):
                        known = self.is_module(argument, where, depth)
                        if known.kind is Kind.GRAPH:
                            return known
        return UNKNOWN

    def _of_name(self, name: str, line: Line, depth: int) -> Known:
        values = self.values(name, line)
        known = [self.of(value, where, depth) for value, where in values]
        best = max(known, default=UNKNOWN)
        goes_backward = best.kind is Kind.UNKNOWN and name in self._backward_of(line.scope)[0]
        if goes_backward and not self.is_off(line.scope):
            return Known(Kind.GRAPH)
        if best.kind is not Kind.UNKNOWN or values:
            return best
        for scope in line.scope.around():
            for parameter in scope.parameters:
                if parameter.arg == name:
                    return self._of_parameter(parameter, scope, depth)
        return UNKNOWN

    def _of_parameter(self, parameter: ast.arg, scope: Scope, depth: int) -> Known:
        given = [
            self.of(value, line, depth) for value, line in self._arguments(scope, parameter.arg)
        ]
        best = max(given, default=UNKNOWN)
        note = parameter.annotation
        if best.kind is Kind.UNKNOWN and note is not None and last_name(note) in names.ARRAY_NOTES:
            return Known(Kind.ARRAY)
        return best

    def _of_attribute(self, node: ast.Attribute, line: Line, depth: int) -> Known:
        if node.attr in names.PLAIN_ATTRIBUTES:
            return Known(Kind.PLAIN)
        if node.attr in names.ARRAY_ATTRIBUTES:
            return Known(Kind.ARRAY)
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            given = [
                self.of(value, where, depth) for value, where in self._attribute_values(node, line)
            ]
            return max(given, default=UNKNOWN)
        return self.of(node.value, line, depth)

    def _of_call(self, node: ast.Call, line: Line, depth: int) -> Known:
        last, name = last_name(node.func), dotted(node.func)
        arguments = [*node.args, *(one.value for one in node.keywords)]
        if isinstance(node.func, ast.Name):
            if last in names.PLAIN_CALLS:
                return Known(Kind.PLAIN)
            if last in names.PASSED_THROUGH:
                return self._most(arguments, line, depth)
        elif isinstance(node.func, ast.Attribute):
            if last in names.PLAIN_METHODS:
                return Known(Kind.PLAIN)
            if last in names.FREED_METHODS:
                return Known(Kind.ARRAY)
        is_off = line.is_grad_off or self.is_off(line.scope)
        if last in ("requires_grad_", "Parameter") or asks_for_gradients(node):
            return Known(Kind.LEAF)
        if last.startswith("register_"):
            return UNKNOWN  # a handle
        if last in ("parameters", "named_parameters"):
            return Known(Kind.LEAF)
        if self._makes_module(node, line, depth).kind is Kind.GRAPH:
            return UNKNOWN  # the model itself, not what it gives out
        if name.startswith(("torch.optim.", "optim.")):
            return UNKNOWN
        if name.endswith("autograd.grad") and not any(
            one.arg == "create_graph" for one in node.keywords
        ):
            return Known(Kind.ARRAY)
        if last in ("items", "values") and isinstance(node.func, ast.Attribute):
            return self.of(node.func.value, line, depth)
        if name == "functional_call" or name.endswith(".functional_call"):
            return Known(Kind.ARRAY if is_off else Kind.GRAPH)
        if name.startswith(("np.", "numpy.")):
            return Known(Kind.ARRAY)
        if name.startswith(("torch.", "F.", "functional.")) or names.LOSS_NAME.search(last):
            most = self._computed(self._most(arguments, line, depth), line)
            if most.kind is Kind.GRAPH or name.startswith("torch."):
                return most if most.kind is Kind.GRAPH and not is_off else Known(Kind.ARRAY)
            return most
        run = self.is_module(node.func, line, depth)
        if run.kind is Kind.GRAPH:
            return Known(Kind.ARRAY) if is_off else run
        for scope in self._defined(last, node.func):
            made = [self.of(value, where, depth) for value, where in returns_of(scope)]
            best = max(made, default=UNKNOWN)
            if best.kind is not Kind.UNKNOWN:
                return Known(Kind.ARRAY) if best.kind is Kind.GRAPH and is_off else best
        if isinstance(node.func, ast.Attribute):
            base = self._computed(self.of(node.func.value, line, depth), line)
            return base if base.kind in (Kind.ARRAY, Kind.GRAPH) else UNKNOWN
        return UNKNOWN

    def _most(self, nodes: list[ast.expr], line: Line, depth: int) -> Known:
        return max((self.of(one, line, depth) for one in nodes), default=UNKNOWN)

    def values(self, name: str, line: Line) -> list[tuple[ast.expr, Line]]:
        """What the name was given last before this line, or, in a loop, anywhere."""
        for scope in line.scope.around():
            lines = self.assigned(scope).get(name)
            if lines:
                is_here = scope is line.scope
                before = [one for one in lines if one.order < line.order] if is_here else lines
                chosen = before[-1:] if before and is_here else lines
                return [pair for one in chosen for pair in value_of(one, name)]
            if any(one.arg == name for one in scope.parameters):
                return []
        return []

    def _attribute_values(self, node: ast.Attribute, line: Line) -> Iterator[tuple[ast.expr, Line]]:
        """What `self.name` is given in the class around the line."""
        scope: Scope | None = line.scope
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        if scope is None or not isinstance(node.value, ast.Name):
            return
        if scope not in self._attributes:
            found: dict[str, list[Line]] = {}
            for inner in scope.below():
                for one in inner.lines:
                    for target in targets_of(one.node):
                        if isinstance(target, ast.Attribute):
                            found.setdefault(target.attr, []).append(one)
            self._attributes[scope] = found
        for one in self._attributes[scope].get(node.attr, ()):
            yield from value_of(one)

    def _defined(self, name: str, called: ast.expr) -> list[Scope]:
        """The one function of this name in the file, if it can be what is called."""
        found = self.outline.functions.get(name, [])
        if len(found) != 1:
            return []
        is_method = found[0].owner is not None
        return found if is_method == isinstance(called, ast.Attribute) else []

    def _call_sites(self, scope: Scope) -> list[tuple[Line, ast.Call]]:
        name = scope.name
        if name == "__init__" and scope.owner is not None:
            name = scope.owner.name
        elif name in ("forward", "__call__") or len(self.outline.functions.get(name, ())) != 1:
            return []
        return [pair for pair in self.outline.calls_of(name) if pair[0].scope is not scope]

    def _arguments(self, scope: Scope, name: str) -> Iterator[tuple[ast.expr, Line]]:
        """What the calls in this file give for one parameter."""
        given = [one.arg for one in scope.parameters]
        if scope.owner is not None and given[:1] in (["self"], ["cls"]):
            given = given[1:]
        if name not in given:
            return
        place = given.index(name)
        for line, call in self._call_sites(scope):
            if place < len(call.args):
                yield call.args[place], line
            for keyword in call.keywords:
                if keyword.arg == name:
                    yield keyword.value, line
