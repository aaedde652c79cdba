"""`leakscope.lines`: memory by line, of the functions one asks for.

@leakscope.lines
def build(n): ...

build(10)
print(leakscope.lines.table(build))     # otherwise on stderr when the program ends

with leakscope.lines.of(load, train) as seen:
    main()
print(seen)
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from types import FunctionType, MethodType, TracebackType
from typing import Any, TypeVar

from leakscope import errors
from leakscope.model import LineFigures
from leakscope.observe.lines.profile import Lines

__all__ = ["LineTable", "lines"]

Any_ = TypeVar("Any_", bound=Callable[..., Any])


class LineTable:
    """What the lines of some functions took so far. Prints as a table, in notebooks as HTML."""

    def __init__(self, functions: tuple[LineFigures, ...]) -> None:
        self.functions = functions

    def __str__(self) -> str:
        from leakscope.render.lines import to_text
        from leakscope.render.style import Style

        return to_text(self.functions, Style.of(sys.stdout)).rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from leakscope.render.lines import to_html

        return to_html(self.functions)


class Seen:
    """What `with leakscope.lines.of(…) as seen` gives; a table once the block has ended."""

    def __init__(self, functions: tuple[FunctionType, ...]) -> None:
        # Figures of its own: a block begins at zero, whatever was watched before.
        self._lines = Lines()
        self._functions = functions

    def __enter__(self) -> Seen:
        for function in self._functions:
            self._lines.watch(function)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for function in self._functions:
            self._lines.stop(function)

    def table(self) -> LineTable:
        return LineTable(tuple(map(self._lines.figures, self._functions)))

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class Watching:
    """The decorator, and what else can be asked of it."""

    def __init__(self) -> None:
        self._lines: Lines | None = None
        self._decorated: dict[int, FunctionType] = {}
        self._is_told: set[int] = set()

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            self._lines = Lines()
        return self._lines

    def __call__(self, function: Any_) -> Any_:
        """Watch the lines of a function. It stays the same object: no wrapper, no frame."""
        inner = plain_function(function)
        self.lines.watch(inner)
        if not self._decorated:
            atexit.register(self._tell)
        self._decorated[id(inner)] = inner
        return function

    def of(self, *functions: Callable[..., Any]) -> Seen:
        """Watch the lines of these functions for as long as a `with` block lasts."""
        return Seen(tuple(map(plain_function, functions)))

    def table(self, *functions: Callable[..., Any]) -> LineTable:
        """What their lines took so far; of all decorated functions if none is named."""
        asked = [plain_function(one) for one in functions] or list(self._decorated.values())
        for one in asked:
            if not self.lines.is_watching(one):
                raise errors.lines_not_watched(one.__qualname__)
        self._is_told.update(map(id, asked))
        return LineTable(tuple(map(self.lines.figures, asked)))

    def _tell(self) -> None:
        """At the end of the program, the tables that nobody has asked for."""
        functions = [one for key, one in self._decorated.items() if key not in self._is_told]
        tables = [table for table in map(self.lines.figures, functions) if table.calls]
        if not tables or sys.stderr is None:
            return
        from leakscope.render.lines import to_text
        from leakscope.render.style import Style

        sys.stderr.write(to_text(tables, Style.of(sys.stderr)))


def plain_function(function: object) -> FunctionType:
    """The function behind a method, a class method or a wrapper.

    Raises:
        LeakscopeError: there is no Python function behind it.
    """
    seen: object = function
    for _ in range(32):
        if isinstance(seen, MethodType | staticmethod | classmethod):
            seen = seen.__func__
        elif isinstance(seen, property) and seen.fget is not None:
            seen = seen.fget
        elif hasattr(seen, "__wrapped__"):
            seen = seen.__wrapped__
        else:
            break
    if not isinstance(seen, FunctionType):
        raise errors.no_lines(getattr(function, "__qualname__", None) or repr(type(function)))
    return seen


lines = Watching()
