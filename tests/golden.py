"""Compare a document with the one in tests/golden; on a difference keep both.

What was rendered is written to tests/actual/, so that `diff -r tests/golden tests/actual`
shows everything at once. `pytest --update-golden` accepts it; read the diff before committing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
GOLDEN = _HERE / "golden"
ACTUAL = _HERE / "actual"


def check(config: pytest.Config, name: str, document: str) -> None:
    """Fail unless `document` is, byte for byte, tests/golden/`name`."""
    golden, actual = GOLDEN / name, ACTUAL / name
    if config.getoption("--update-golden"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(document.encode())
        return
    expected = golden.read_bytes().decode() if golden.exists() else ""
    if document == expected:
        actual.unlink(missing_ok=True)
        return
    actual.parent.mkdir(parents=True, exist_ok=True)
    actual.write_bytes(document.encode())
    assert document == expected, f"{actual} differs from {golden}; --update-golden accepts it"
