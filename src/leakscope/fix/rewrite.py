"""A text and edits in, the new text out; all that is not edited stays as it was, byte for byte."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from leakscope.fix.edits import After, CannotEditError, Decorate, Edit, Import, Replace, Span, Wrap

_New = cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]
_Step = Callable[[cst.CSTNode], _New]
"""One edit of a node; or, of a statement that has got others below it, of the last of them."""

_ATOMS = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.List, cst.Dict, cst.Set)


def rewrite(text: str, edits: Sequence[Edit], file: str = "<fix>") -> str:
    """The text with the edits made.

    Raises:
        CannotEditError: the text is no Python, an edit has no place in it, or what came out would
            not compile.
    """
    try:
        wrapper = MetadataWrapper(cst.parse_module(text))
        places = _Places(wrapper)
        steps: dict[cst.CSTNode, list[_Step]] = {}
        # What comes below a statement is added last, when the statement itself is done.
        for edit in sorted(edits, key=lambda edit: isinstance(edit, After)):
            for node, step in _steps(places, edit):
                steps.setdefault(node, []).append(step)
        module = wrapper.module.visit(_Rewriter(steps))
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise CannotEditError(f"the source cannot be parsed: {_short(error)}") from error
    _check(module.code, file)
    return module.code


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check(code: str, file: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(code, file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotEditError(f"the changed source does not compile: {error}") from error


class _Places:
    """Which node of the tree is at a place."""

    def __init__(self, wrapper: MetadataWrapper) -> None:
        self.module = wrapper.module
        self._at: dict[Span, list[cst.CSTNode]] = {}
        self._line_of: dict[tuple[int, int], cst.CSTNode] = {}
        self._functions: dict[tuple[int, int], cst.FunctionDef] = {}
        positions = wrapper.resolve(PositionProvider)
        for node, code_range in positions.items():
            span = _span(code_range)
            self._at.setdefault(span, []).append(node)
            if isinstance(node, cst.FunctionDef):
                self._functions[span.line, span.column] = node
            elif isinstance(node, cst.SimpleStatementLine):
                last = _span(positions[node.body[-1]])
                self._line_of[last.line, last.column] = node

    def expression(self, span: Span) -> cst.BaseExpression:
        for node in self._at.get(span, ()):
            if isinstance(node, cst.BaseExpression):
                return node
        raise CannotEditError(f"there is no such expression in line {span.line}")

    def statement(self, span: Span) -> cst.CSTNode:
        """The line of its own that ends with the statement."""
        node = self._line_of.get((span.line, span.column))
        if node is None:
            raise CannotEditError(f"the statement of line {span.line} shares its line")
        return node

    def function(self, span: Span) -> cst.FunctionDef:
        node = self._functions.get((span.line, span.column))
        if node is None:
            raise CannotEditError(f"there is no function in line {span.line}")
        return node


def _span(code_range: CodeRange) -> Span:
    start, end = code_range.start, code_range.end
    return Span(start.line, start.column, end.line, end.column)


def _steps(places: _Places, edit: Edit) -> Iterable[tuple[cst.CSTNode, _Step]]:
    parse = places.module.config_for_parsing
    match edit:
        case Wrap(span, suffix):
            yield places.expression(span), lambda node: _wrapped(node, suffix)
        case Replace(span, code):
            yield places.expression(span), lambda _: cst.parse_expression(code, parse)
        case After(span, code):
            more = cst.parse_statement(code, parse)
            yield places.statement(span), lambda node: cst.FlattenSentinel([node, more])
        case Decorate(span, code):
            decorator = cst.Decorator(cst.parse_expression(code, parse))
            yield places.function(span), lambda node: _decorated(node, decorator)
        case Import(module, name):
            code = f"from {module} import {name}" if name else f"import {module}"
            if not _has_import(places.module, code):
                more = cst.parse_statement(code, parse)
                yield places.module, lambda node: _with_import(node, more)


def _wrapped(node: cst.CSTNode, suffix: str) -> cst.CSTNode:
    assert isinstance(node, cst.BaseExpression)
    if not isinstance(node, _ATOMS) and not node.lpar:
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    call = cst.ensure_type(cst.parse_expression(f"x{suffix}"), cst.Call)
    return call.with_changes(
        func=cst.ensure_type(call.func, cst.Attribute).with_changes(value=node)
    )


def _decorated(node: cst.CSTNode, decorator: cst.Decorator) -> cst.CSTNode:
    function = cst.ensure_type(node, cst.FunctionDef)
    return function.with_changes(decorators=[decorator, *function.decorators])


def _has_import(module: cst.Module, code: str) -> bool:
    lines = [node for node in module.body if isinstance(node, cst.SimpleStatementLine)]
    return any(module.code_for_node(part) == code for line in lines for part in line.body)


def _with_import(node: cst.CSTNode, more: cst.CSTNode) -> cst.CSTNode:
    """Below the last import at the top of the file, or below the docstring."""
    module = cst.ensure_type(node, cst.Module)
    last = -1
    for index, line in enumerate(module.body):
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        is_docstring = index == 0 and isinstance(small, cst.Expr)
        if isinstance(small, cst.Import | cst.ImportFrom) or is_docstring:
            last = index
        else:
            break
    body = [*module.body[: last + 1], more, *module.body[last + 1 :]]
    return module.with_changes(body=body)


class _Rewriter(cst.CSTTransformer):
    def __init__(self, steps: dict[cst.CSTNode, list[_Step]]) -> None:
        super().__init__()
        self._steps = steps

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> _New:  # type: ignore[override]
        node: _New = updated_node
        for step in self._steps.get(original_node, ()):
            if isinstance(node, cst.FlattenSentinel):
                *above, last = node
                node = cst.FlattenSentinel([*above, *_as_list(step(last))])
            else:
                node = step(node)
        return node


def _as_list(node: _New) -> list[cst.CSTNode]:
    return list(node) if isinstance(node, cst.FlattenSentinel) else [node]
