"""Report → document. A format is a file `to_<name>.py` here with one function, `render`.

One that also shows the picture of a run says `DRAWS = True` and takes it as a third argument, and a
second run to compare with as a fourth.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import cast

from leakscope import errors
from leakscope.model import Exhibit, Picture, Report
from leakscope.render.style import Style

__all__ = ["Style", "draws", "formats", "render"]

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


def draws(to: str) -> bool:
    """Whether the format shows a picture, so that one is worth making."""
    return to in formats() and bool(getattr(_module(to), "DRAWS", False))


def render(
    report: Report,
    to: str,
    style: Style | None = None,
    picture: Picture | None = None,
    against: Exhibit | None = None,
) -> str:
    """The report as a document that ends with a line break.

    Raises:
        LeakscopeError: there is no format of that name.
    """
    known = formats()
    if to not in known:
        raise errors.unknown_format(to, known)
    style = style or Style()
    if draws(to):
        return cast("str", _module(to).render(report, style, picture, against))
    return cast("str", _module(to).render(report, style))


def _module(to: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{_PREFIX}{to}")
