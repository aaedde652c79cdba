"""Report → document. A format is a file `to_<name>.py` here with one function, `render`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import cast

from leakscope import errors
from leakscope.model import Report
from leakscope.render.style import Style

__all__ = ["Style", "formats", "render"]

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


def render(report: Report, to: str, style: Style | None = None) -> str:
    """The report as a document that ends with a line break.

    Raises:
        LeakscopeError: there is no format of that name.
    """
    known = formats()
    if to not in known:
        raise errors.unknown_format(to, known)
    module = importlib.import_module(f"{__name__}.{_PREFIX}{to}")
    return cast("str", module.render(report, style or Style()))
