"""Why does my training or inference job's memory keep growing, and how do I stop it?

    leakscope run train.py                 # no change to the program

    with leakscope.watch() as w:           # or from inside
        for batch in loader:
            train(batch)
            leakscope.step()
    print(w.report().verdict)

    @leakscope.lines                       # one function, line by line
    def build(n): ...

Importing this module loads nothing heavy: no framework, no numpy, no rich. Each public name is
fetched from its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.api import Watch, analyse, compare, load, step, watch
    from leakscope.line_by_line import lines

__version__ = "0.1.0"
__all__ = ["Watch", "__version__", "analyse", "compare", "lines", "load", "step", "watch"]
_HOMES = {"lines": "leakscope.line_by_line", "load_ipython_extension": "leakscope.magics"}
"""Where a public name comes from, if not from `leakscope.api`."""


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in (*__all__, *_HOMES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "leakscope.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
