"""Recording → another tool. A format is a file `to_<name>.py` here with one function, `export`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import cast

from leakscope import errors
from leakscope.model import Report
from leakscope.record.reader import Recording

_PREFIX = "to_"


def formats() -> tuple[str, ...]:
    """The formats there are, by name: the folder is the registry."""
    return tuple(
        sorted(
            module.name.removeprefix(_PREFIX)
            for module in pkgutil.iter_modules(__path__)
            if module.name.startswith(_PREFIX)
        )
    )


def export(recording: Recording, report: Report, to: str) -> str:
    """A document for another tool.

    Raises:
        LeakscopeError: there is no format of that name.
    """
    known = formats()
    if to not in known:
        raise errors.unknown_format(to, known)
    module = importlib.import_module(f"{__name__}.{_PREFIX}{to}")
    return cast("str", module.export(recording, report))
