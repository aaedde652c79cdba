"""Where kept things were made."""

from __future__ import annotations

import logging

from leakscope.observe.allocations.python_lines import sites_of


def test_a_record_of_logging_knows_its_line() -> None:
    record = logging.LogRecord("app", logging.INFO, "/app/train.py", 117, "%s", (1,), None, "main")
    (site,) = sites_of([record])
    assert [(one.file, one.line, one.function) for one in site.frames] == [
        ("/app/train.py", 117, "main")
    ]


def test_what_was_not_traced_has_none() -> None:
    assert sites_of([object()]) == ()
