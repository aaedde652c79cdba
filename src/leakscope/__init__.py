"""Why does my training or inference job's memory keep growing, and how do I stop it?

    leakscope run train.py                 # no change to the program

    with leakscope.watch() as w:           # or from inside
        for batch in loader:
            train(batch)
            leakscope.step()
    print(w.report().verdict)

Importing this module loads nothing heavy: no framework, no numpy, no rich. Each public name is
fetched from `leakscope.api` when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.api import Watch, analyse, compare, load, step, watch

__version__ = "0.1.0"
__all__ = ["Watch", "__version__", "analyse", "compare", "load", "step", "watch"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from leakscope import api

    value = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
