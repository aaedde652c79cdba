"""References that code makes: closures, defaults, bound methods, caches, and frames at rest.

Readers like those in `links.py`: each gets a chain of objects and a place in it, and answers
with the link from there, or with None if it does not know.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType, TracebackType
from typing import Any

from leakscope.observe.anatomy import (
    class_dict,
    class_name,
    class_qualname,
    code_of,
    dict_of,
    function_name,
    is_exactly,
    key_of,
)
from leakscope.observe.frames import names_in
from leakscope.observe.roots import Hop, line_of

Reader = Callable[[list[Any], int], Hop | None]

_SUSPENDED: dict[type, tuple[str, str]] = {
    types.GeneratorType: ("gi_frame", "generator"),
    types.CoroutineType: ("cr_frame", "coroutine"),
    types.AsyncGeneratorType: ("ag_frame", "async generator"),
}


def is_suspended(obj: object) -> bool:
    return is_exactly(obj, *_SUSPENDED)


# ── functions ──


def _function(chain: list[Any], at: int) -> Hop | None:
    function, child = chain[at], chain[at + 1]
    code = function.__code__
    closure = function.__closure__
    where = {"file": code.co_filename, "scope": code.co_qualname, "line": code.co_firstlineno}
    if child is closure and at + 3 < len(chain):
        for name, cell in zip(code.co_freevars, closure, strict=False):
            if cell is chain[at + 2]:
                return Hop(3, f"closure {name} of {code.co_qualname}()", "closure", name, **where)
    if at + 2 < len(chain) and (name := _default_name(function, child, chain[at + 2])):
        return Hop(2, f"default of {name} in {code.co_qualname}()", "default", name, **where)
    if child is function.__globals__ and at + 2 < len(chain):
        name = key_of(child, chain[at + 2])
        return Hop(2, f"global {name} of {code.co_qualname}()", "global", name, code.co_filename)
    return None


def _default_name(function: FunctionType, held: object, value: object) -> str:
    code, defaults = function.__code__, function.__defaults__
    if held is defaults and defaults is not None:
        first = code.co_argcount - len(defaults)
        for index, default in enumerate(defaults):
            if default is value:
                return code.co_varnames[first + index]
    if held is function.__kwdefaults__ and type(held) is dict:
        return key_of(held, value)
    return ""


def _cell(chain: list[Any], at: int) -> Hop | None:
    return Hop(1, "closure", "closure")


def _method(chain: list[Any], at: int) -> Hop | None:
    method, child = chain[at], chain[at + 1]
    if method.__self__ is not child:
        return None
    code = code_of(method.__func__)
    if code is None:
        return Hop(1, "self of a bound method", "bound", "__self__")
    via = f"self of bound method {code.co_qualname}()"
    return Hop(1, via, "bound", code.co_name, code.co_filename, code.co_qualname, line_of(code))


def _builtin_method(chain: list[Any], at: int) -> Hop | None:
    method, child = chain[at], chain[at + 1]
    if method.__self__ is not child:
        return None
    return Hop(1, f"self of bound method {class_name(type(child))}.{method.__name__}()", "bound")


def _partial(chain: list[Any], at: int) -> Hop | None:
    parts = class_dict(functools.partial)
    func = parts["func"].__get__(chain[at])
    code = code_of(func)
    scope = function_name(func)
    name, file = (code.co_name, code.co_filename) if code else ("", "")
    child = chain[at + 1]
    if child is func:
        return Hop(1, f"function of partial({scope})", "partial", name, file, scope, line_of(code))
    is_arguments = any(child is parts[part].__get__(chain[at]) for part in ("args", "keywords"))
    if not is_arguments or at + 2 >= len(chain):
        return None
    return Hop(2, f"argument of partial({scope})", "partial", name, file, scope, line_of(code))


def _cache(chain: list[Any], at: int) -> Hop | None:
    """A result or an argument of an `lru_cache`; arguments sit in a tuple that is the key."""
    own = dict_of(chain[at])
    table: Any = None
    for part in gc.get_referents(chain[at]):
        if type(part) is dict and part is not own:
            table = part
    if chain[at + 1] is own:
        return None
    first = at + 2 if chain[at + 1] is table and at + 2 < len(chain) else at + 1
    if any(key is chain[first] for key in dict.keys(table)):
        last = first + 1 if type(chain[first]) is tuple and first + 1 < len(chain) else first
        return Hop(last - at, "key", "item")
    return Hop(first - at, "[x]", "item")


# ── frames that do not run ──


def _suspended(chain: list[Any], at: int) -> Hop | None:
    holder, child = chain[at], chain[at + 1]
    descriptor, word = _SUSPENDED[type(holder)]
    frame = class_dict(type(holder))[descriptor].__get__(holder)
    if frame is None:
        return None
    code = frame.f_code
    where = {"file": code.co_filename, "scope": code.co_qualname, "line": frame.f_lineno or 0}
    name = _local_name(frame, child)
    if name:
        return Hop(1, f"local {name} in {word} {code.co_qualname}()", "generator", name, **where)
    verb = "awaited" if is_suspended(child) else "used"
    return Hop(1, f"{verb} in {word} {code.co_qualname}()", "generator", **where)


def _traceback(chain: list[Any], at: int) -> Hop | None:
    """An exception, its traceback or a finished frame, down to the local that it keeps."""
    last = at
    while last < len(chain) - 1 and (last == at or _is_trace(chain[last])):
        last += 1
    frame, value = chain[last - 1], chain[last]
    if type(frame) is not FrameType:
        return Hop(1, ".__traceback__", "traceback") if _is_trace(chain[at + 1]) else None
    word = "finished frame"
    if type(chain[at]) is TracebackType:
        word = "traceback"
    elif type(chain[at]) is not FrameType:
        word = f"traceback of {class_name(type(chain[at]))}"
    code = frame.f_code
    name = _local_name(frame, value)
    shown = f"local {name} in {code.co_qualname}()" if name else code.co_qualname + "()"
    line = frame.f_lineno or line_of(code)
    return Hop(
        last - at, f"{word}, {shown}", "traceback", name, code.co_filename, code.co_qualname, line
    )


def _exception(chain: list[Any], at: int) -> Hop | None:
    error, child = chain[at], chain[at + 1]
    if _is_trace(child):
        return _traceback(chain, at)
    for name in ("__context__", "__cause__", "args"):
        if class_dict(BaseException)[name].__get__(error) is child:
            return Hop(1, f".{name}", "attribute", name, scope=class_qualname(type(error)))
    return None


def _is_trace(obj: object) -> bool:
    return is_exactly(obj, TracebackType, FrameType)


def _local_name(frame: FrameType, value: object) -> str:
    found = names_in(frame, {id(value)})
    return found[0][1] if found else ""


BY_TYPE: tuple[tuple[type, Reader], ...] = (
    (FunctionType, _function),
    (types.CellType, _cell),
    (MethodType, _method),
    (types.BuiltinMethodType, _builtin_method),
    (TracebackType, _traceback),
    (FrameType, _traceback),
    *((kind, _suspended) for kind in _SUSPENDED),
)
BY_BASE: tuple[tuple[type, Reader], ...] = (
    (functools.partial, _partial),
    (functools._lru_cache_wrapper, _cache),
    (BaseException, _exception),
)
