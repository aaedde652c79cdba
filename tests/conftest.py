from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

_TF = Path(__file__).parent / "tf"
_NEEDED = ("tensorflow", "keras", "jax")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what was rendered over tests/golden instead of comparing with it",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests/tf where the frameworks are not; `make test-tf` has them."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    for item in items:
        if _TF in item.path.parents:
            item.add_marker(pytest.mark.tf)
            if missing:
                why = f"no {', '.join(missing)} here: make test-tf has its own environment"
                item.add_marker(pytest.mark.skip(reason=why))
