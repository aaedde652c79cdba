"""Modules that come, or are about to come, are the program starting up."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from time import monotonic_ns
from types import ModuleType

import pytest

from leakscope.agent.importing import Importing

_WORKS = """
import threading
from leakscope.agent.importing import Importing
importing = Importing()
importing.goes_on(0)
answers = []
thread = threading.Thread(target=lambda: answers.append(importing.goes_on(0)))
thread.start()
thread.join()
"""


def test_a_module_that_has_come_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = Importing()
    importing.note(0)
    assert not importing.goes_on(0)
    monkeypatch.setitem(sys.modules, "just_come", ModuleType("just_come"))
    assert importing.goes_on(0)
    assert not importing.goes_on(0)
    assert importing.take_stretch() is not None
    assert importing.goes_on(1)
    assert importing.take_stretch() is None, "what is compiled is the program's own doing"


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="asks main")
def test_a_package_that_works_within_its_import_loads_nothing_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a look is taken at what transformers notes about its own files."""
    (tmp_path / "works_at_import.py").write_text(_WORKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import works_at_import  # type: ignore[import-not-found]

    assert works_at_import.answers == [True]
    del sys.modules["works_at_import"]


def test_a_stretch_of_imports_is_told_once_from_the_row_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    importing = Importing()
    importing.note(0)
    before_ns = monotonic_ns()
    assert not importing.goes_on(0)
    asked_ns = monotonic_ns()
    assert importing.take_stretch() is None
    for name in ("first_to_come", "second_to_come"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        assert importing.goes_on(0)
    ended_ns = monotonic_ns()
    assert not importing.goes_on(0)
    began, ended = importing.take_stretch() or (0, 0)
    assert before_ns <= began <= asked_ns < ended <= ended_ns
    assert importing.take_stretch() is None
