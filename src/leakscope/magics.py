"""`%load_ext leakscope`: `%%leakscope` watches a cell and reports, `%lines` and `%%lines` tell
memory by line."""

from __future__ import annotations

import ast
import shlex
import sys
import tempfile
from collections.abc import Callable
from types import FunctionType
from typing import Any

from leakscope import errors
from leakscope.line_by_line import LineTable, plain_function
from leakscope.model import Report
from leakscope.observe.lines.profile import Lines

_USAGE = "%lines -f FUNCTION STATEMENT"


class CellReport:
    """A report that shows itself: as text in a terminal and in a notebook."""

    def __init__(self, report: Report, directory: str) -> None:
        self.report = report
        self.directory = directory

    def __repr__(self) -> str:
        from leakscope.render import Style, render

        style = Style.of(sys.stdout, recording=self.directory)
        return render(self.report, "terminal", style).rstrip("\n")

    def _repr_html_(self) -> str:
        from html import escape

        from leakscope.render import Style, render

        shown = render(self.report, "terminal", Style(width=100, recording=self.directory))
        return f"<pre>{escape(shown)}</pre>"


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext leakscope`."""
    for kind, name, magic in (
        ("cell", "leakscope", _watch_cell),
        ("line_cell", "lines", _lines),
    ):
        shell.register_magic_function(_bound(magic, shell), kind, name)


def _bound(magic: Any, shell: Any) -> Any:
    def call(line: str, cell: str | None = None) -> Any:
        return magic(shell, line, cell)

    call.__doc__ = magic.__doc__
    return call


def _watch_cell(shell: Any, line: str, cell: str | None) -> CellReport | None:
    """%%leakscope [FOLDER]: run the cell, watch it, and report; the recording goes to FOLDER."""
    from leakscope.api import watch

    words = shlex.split(line)
    if len(words) > 1:
        raise errors.bad_option("%%leakscope", line, "at most one folder", "%%leakscope runs/a")
    out = words[0] if words else tempfile.mkdtemp(prefix="leakscope-")
    with watch(out) as watched:
        ran = shell.run_cell(cell or "")
    if not ran.success:
        return None  # the shell has shown the error of the cell
    return CellReport(watched.report(), watched.directory)


def _lines(shell: Any, line: str, cell: str | None = None) -> LineTable:
    """%lines -f FUNCTION STATEMENT: run the statement, tell the function's lines.

    %lines STATEMENT tells those of the function that the statement calls. %%lines, over a cell,
    tells those of the cell itself, and of each -f.
    """
    names, statement = _asked(line)
    functions = [plain_function(shell.ev(name)) for name in names]
    if cell is not None:
        body = _as_function(shell, cell)
        return _told([body, *functions], body)
    if not statement:
        raise errors.bad_option("%lines", line, "a statement to run", f"{_USAGE}")
    called = functions or [plain_function(shell.ev(_called_by(statement)))]
    code = compile(shell.transform_cell(statement), "<lines>", "exec")
    return _told(called, FunctionType(code, shell.user_ns))


def _told(functions: list[FunctionType], run: Callable[[], object]) -> LineTable:
    """Run something with these functions watched; the table also if it fails, which is shown as
    the program's own error."""
    lines = Lines()
    for function in functions:
        lines.watch(function)
    try:
        run()
    finally:
        for function in functions:
            lines.stop(function)
    return LineTable(tuple(map(lines.figures, functions)))


def _asked(line: str) -> tuple[list[str], str]:
    """The functions named with -f, and the rest."""
    names, rest = [], line.strip()
    while rest.startswith("-f"):
        name, _, rest = rest[2:].lstrip().partition(" ")
        names.append(name)
        rest = rest.lstrip()
    return names, rest


def _called_by(statement: str) -> str:
    """The function that the statement calls, as it is written: the outermost call, which comes
    first."""
    for node in ast.walk(ast.parse(statement)):
        if isinstance(node, ast.Call):
            return ast.unparse(node.func)
    raise errors.bad_option("%lines", statement, "a statement that calls a function", _USAGE)


def _as_function(shell: Any, cell: str) -> FunctionType:
    """The cell as a function whose variables are the notebook's."""
    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, raw_code=cell)
    return FunctionType(compile(source, name, "exec"), shell.user_ns)
