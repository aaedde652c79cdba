"""The magics, in a real IPython, and the decorator, in a real program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leakscope.errors import LeakscopeError
from leakscope.line_by_line import LineTable, plain_function
from leakscope.model import Gap, LineFigures, LineRow
from leakscope.render.lines import to_html, to_text
from leakscope.render.style import Style
from running import environment, run_plain

_CELL = """
kept = []
def fill(n):
    a = bytes(n)
    kept.append(a)
    return n
"""


@pytest.fixture
def shell() -> Any:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    one = interactive.InteractiveShell()
    one.run_cell("%load_ext leakscope")
    one.run_cell(_CELL)
    return one


def test_line_magic_names_the_function_that_is_called(shell: Any) -> None:
    table = shell.run_line_magic("lines", "fill(1_000_000)")
    assert isinstance(table, LineTable)
    (figures,) = table.functions
    assert figures.function == "fill"
    (a_line,) = (one for one in figures.rows if "bytes(n)" in one.source)
    assert a_line.kept_bytes == pytest.approx(1_000_000, rel=0.02)
    assert len(shell.user_ns["kept"]) == 1, "the statement ran, once"
    assert "a = bytes(n)" in str(table)


def test_line_magic_with_functions(shell: Any) -> None:
    table = shell.run_line_magic("lines", "-f fill x = [fill(10_000) for _ in range(50)]")
    assert table.functions[0].calls == 50
    assert shell.user_ns["x"] == [10_000] * 50


def test_cell_magic_tells_the_cell_itself(shell: Any) -> None:
    cell = "big = bytes(2_000_000)\nfor i in range(3):\n    fill(100_000)\nend = big[:3]\n"
    table = shell.run_cell_magic("lines", "-f fill", cell)
    body, fill = table.functions
    rows = {one.source.strip(): one for one in body.rows}
    assert rows["big = bytes(2_000_000)"].kept_bytes == pytest.approx(2_000_000, rel=0.02)
    assert rows["fill(100_000)"].calls == 3
    assert rows["fill(100_000)"].with_calls_bytes == pytest.approx(300_000, rel=0.05)
    assert fill.calls == 3
    assert shell.user_ns["end"] == b"\0\0\0", "variables are the notebook's"


def test_a_cell_watched_with_a_report(shell: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    loop = "for i in range(80):\n    kept.append(bytes(200_000))\n    leakscope.step()\n"
    cell = "import leakscope\n" + loop
    shown = shell.run_cell_magic("leakscope", str(out), cell)
    assert shown.report.steps == 80
    assert shown.report.steps_from == "api"
    assert len(shell.user_ns["kept"]) == 80
    assert str(out) in repr(shown)
    assert shown._repr_html_().startswith("<pre>")


def test_an_error_in_the_cell_is_the_cells_own(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell_magic("leakscope", "", "1 / 0") is None
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["", "-f fill", "kept"])
def test_what_cannot_be_run_is_said(shell: Any, line: str) -> None:
    with pytest.raises(LeakscopeError, match="does not take"):
        shell.run_line_magic("lines", line)


def test_functions_without_lines_are_refused() -> None:
    with pytest.raises(LeakscopeError, match="has no lines"):
        plain_function(len)


_PROGRAM = """
import leakscope
kept = []

@leakscope.lines
def handle(i):
    data = bytes(10_000)
    scratch = bytes(40_000)
    kept.append(data)
    return len(scratch)

for i in range(500):
    handle(i)
print("done")
"""


def test_1_3_a_decorated_function_of_a_program(tmp_path: Path) -> None:
    """A per-line table: calls, bytes kept, peak, host and device; on stderr, at the end."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    ran = run_plain(["program.py"], tmp_path, env={"PYTHONPATH": _ours()})
    assert (ran.status, ran.stdout) == (0, b"done\n")
    shown = ran.stderr.decode()
    assert "handle" in shown
    assert "program.py:5" in shown
    told = re.search(r"500 calls, \+(\S+) MiB kept; most by line 7, \+(\S+) KiB each time", shown)
    assert told is not None, shown
    assert float(told[2]) == pytest.approx(10_048 / 1024, rel=0.1)
    assert re.search(r"^ +line +calls +kept +per call +peak +source$", shown, re.MULTILINE)
    assert re.search(r"^ +8 +500 +.* 39\.\d KiB +scratch = bytes\(40_000\)$", shown, re.MULTILINE)
    assert "device memory: nothing that uses a device is loaded" in shown


def test_the_table_can_be_asked_for_instead(tmp_path: Path) -> None:
    asks = _PROGRAM + "table = leakscope.lines.table(handle)\nprint(table.functions[0].calls)\n"
    (tmp_path / "program.py").write_text(asks)
    ran = run_plain(["program.py"], tmp_path, env={"PYTHONPATH": _ours()})
    assert (ran.stdout, ran.stderr) == (b"done\n500\n", b"")


def test_a_block_over_several_functions(tmp_path: Path) -> None:
    block = _PROGRAM.replace("@leakscope.lines\n", "").replace(
        "for i in range(500):\n    handle(i)\n",
        "with leakscope.lines.of(handle) as seen:\n    handle(1)\nhandle(2)\nprint(seen)\n",
    )
    (tmp_path / "program.py").write_text(block)
    ran = run_plain(["program.py"], tmp_path, env={"PYTHONPATH": _ours()})
    assert ran.status == 0, ran.stderr
    assert b"1 call, " in ran.stdout
    assert ran.stderr == b""


def test_importing_and_decorating_loads_nothing_heavy() -> None:
    asks = (
        "import sys, leakscope\n"
        "assert 'leakscope.line_by_line' not in sys.modules\n"
        "leakscope.lines(lambda: None)\n"
        "print([m for m in ('torch', 'tensorflow', 'jax', 'numpy', 'rich', 'IPython')"
        " if m in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", asks],
        env=environment({"PYTHONPATH": _ours()}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "[]\n"


def test_what_the_program_wrote_is_escaped() -> None:
    hostile = "x = '<script>alert(1)</script>\x1b[31m'"
    row = LineRow(3, hostile, calls=1, kept_bytes=5000, with_calls_bytes=5000, peak_bytes=0)
    gap = Gap(what="<b>", why="because")
    figures = LineFigures("<f>", "<stdin>", 1, 1, (row,), (gap,))
    html = to_html([figures])
    assert "<script>" not in html
    assert "&lt;f&gt;" in html
    assert "\x1b" not in html + to_text([figures], Style())


def test_no_line_is_blamed_for_what_another_gives_back() -> None:
    took = LineRow(3, "backward()", 9, kept_bytes=90_000, with_calls_bytes=90_000, peak_bytes=0)
    gave = LineRow(4, "zero_grad()", 9, kept_bytes=-80_000, with_calls_bytes=-80_000, peak_bytes=0)
    shown = to_text([LineFigures("f", "f.py", 1, 9, (took, gave))], Style())
    assert "most by" not in shown
    assert "78.1 KiB of what lines took, other lines gave back" in " ".join(shown.split())


def test_a_narrow_terminal_and_what_was_not_measured() -> None:
    row = LineRow(3, "x = 1" * 40, calls=2, kept_bytes=None, with_calls_bytes=None, peak_bytes=None)
    shown = to_text([LineFigures("f", "f.py", 1, 2, (row,))], Style(width=60))
    assert "no line was measured" in shown
    assert max(map(len, shown.splitlines())) <= 60


def _ours() -> str:
    import leakscope

    return str(Path(leakscope.__file__).parent.parent)
