"""Sets the default start method of multiprocessing, then lets the next sitecustomize run.

On the path only while `leakscope bisect` tries it. A program that names its method keeps it.
"""
# mypy: ignore-errors

import os
import sys

_method = os.environ.get("LEAKSCOPE_START_METHOD")
if _method and os.environ.get("LEAKSCOPE_RUN_DIR"):
    import multiprocessing.context as _context

    _concrete = getattr(_context, "_concrete_contexts", {}).get(_method)
    if _concrete is not None and hasattr(_context._default_context, "_default_context"):
        # As if it were the platform's: the program may still choose another, once, without error.
        _context._default_context._default_context = _concrete

_here = os.path.dirname(os.path.abspath(__file__))
_rest = [entry for entry in sys.path if os.path.abspath(entry) != _here]
sys.path[:] = _rest
_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as _error:
    if getattr(_error, "name", None) != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = _ours
