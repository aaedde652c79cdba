"""What the variables of a function give back when it returns, one after the other.

Their values would be dropped a moment later, in the same order; here each is dropped on its own, so
that the counters can be read in between.
"""

from __future__ import annotations

import ctypes
import dis
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

_SMALL = (int, float, bool, complex, str, type(None), type)
"""Values whose end gives back nothing that is worth a reading."""
_ASKS_FOR_LOCALS = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "stack", "set_trace"}
)
"""A function that uses one of these names may see its variables as a dictionary, or its frame."""


def gives_back(code: CodeType) -> dict[str, tuple[int, ...]]:
    """The local variables that a return drops, with the lines that store them. Not arguments,
    which the caller has, nor variables that inner functions share."""
    if _ASKS_FOR_LOCALS.intersection((*code.co_names, *code.co_varnames)):
        return {}
    n_arguments = code.co_argcount + code.co_kwonlyargcount
    n_arguments += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    own = set(code.co_varnames[n_arguments:]) - set(code.co_cellvars)
    stored: dict[str, list[int]] = {}
    line = code.co_firstlineno
    for one in dis.get_instructions(code):
        line = _line_of(one) or line
        if one.opname.startswith("STORE_FAST"):
            names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            for name in names:
                if name in own:
                    stored.setdefault(name, []).append(line)
    return {name: tuple(lines) for name, lines in stored.items()}


def _line_of(instruction: Any) -> int | None:
    positions = instruction.positions
    return positions.lineno if positions is not None else None


def is_held_elsewhere(frame: FrameType) -> bool:
    """True if somebody besides the interpreter and us has the frame, or follows it."""
    return sys.gettrace() is not None or sys.getrefcount(frame) > _REFERENCES_OF_OURS


_REFERENCES_OF_OURS = 5
"""The running frame's own, three variables on the way here, and the argument of `getrefcount`."""


def give_back_each(frame: FrameType, names: Iterable[str]) -> Iterator[str]:
    """Drop the values of these variables, one by one, and tell each name after that.

    All of them are told, also those that had no value: then nothing was given back. The first that
    is told is no name: by then everything is made that this itself needs.
    """
    values, each = frame.f_locals, iter(names)
    yield ""
    for name in each:
        values = frame.f_locals
        if type(values.get(name)) not in _SMALL:
            values[name] = None
            _write_back(frame)
        yield name
    values = frame.f_locals
    if isinstance(values, dict):  # 3.11 and 3.12: a copy, which would keep the values
        values.clear()


def _write_back(frame: FrameType) -> None:
    """Before 3.13 what is set in the copy reaches the frame only so, and once for each time that
    the copy was asked for."""
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
