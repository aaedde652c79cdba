"""Hear that an attribute is read or set, without a frame of ours on the program's stack.

Wrapping a method would put our frame into every traceback that passes through it, and the
program's stderr would no longer be its own. A tap is a data descriptor on the class instead:
it is asked when the attribute is read, tells its listener, answers what the instance would
have answered, and is gone from the stack before the program's code runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from weakref import ref

from leakscope.observe.counters.step_counter import StepCounter

_MISSING: Any = object()


def _namespace_of(instance: Any) -> dict[str, Any]:
    """Its attributes. A class written in C may keep them in a dict and show it under no name, as
    TensorFlow's graphs do: Python itself knows where it is."""
    try:
        own: dict[str, Any] = instance.__dict__
    except AttributeError:
        own = _generic_dict(instance, None)
    return own


_generic_dict: Any = ctypes.pythonapi.PyObject_GenericGetDict
_generic_dict.argtypes = (ctypes.py_object, ctypes.c_void_p)
_generic_dict.restype = ctypes.py_object


class Tap:
    """Listens to one attribute of one class; `remove()` leaves the class as it was."""

    def __init__(
        self,
        owner: type,
        name: str,
        *,
        on_read: Callable[[Any], None] | None = None,
        on_set: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self._owner = ref(owner)
        self._name = name
        self._on_read = on_read
        self._on_set = on_set
        self._own = owner.__dict__.get(name, _MISSING)
        self._default = getattr(owner, name, _MISSING)

    def install(self) -> Tap:
        owner = self._owner()
        if owner is not None:
            setattr(owner, self._name, self)
        return self

    def remove(self) -> None:
        owner = self._owner()
        if owner is None or owner.__dict__.get(self._name) is not self:
            return
        if self._own is _MISSING:
            delattr(owner, self._name)
        else:
            setattr(owner, self._name, self._own)

    def __reduce__(self) -> tuple[Any, ...]:
        # Where a class is pickled by value (cloudpickle: ray, joblib), what travels is the value
        # the tap stands for; whoever unpickles it may have no leakscope.
        return getattr, (0, "", None if self._default is _MISSING else self._default)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None:
            if self._on_read is not None:
                self._on_read(instance)
            try:
                own = instance.__dict__
            except AttributeError:
                own = _namespace_of(instance)
            value = own.get(self._name, self._default)
        else:
            value = self._default
        if value is _MISSING:
            raise AttributeError(self._name)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        _namespace_of(instance)[self._name] = value
        if self._on_set is not None:
            self._on_set(instance, value)

    def __delete__(self, instance: Any) -> None:
        try:
            del _namespace_of(instance)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


class CallTap(Tap):
    """Counts reads that mean a call is made, as cheaply as Python can."""

    def __init__(
        self, owner: type, name: str, counter: StepCounter, look: Callable[[], None]
    ) -> None:
        super().__init__(owner, name)
        self._counter = counter
        self._look = look

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self._default
        value = instance.__dict__.get(self._name, self._default)
        counter = self._counter
        # A compiled module reads the attribute twice in one call: to ask, and to call it.
        counter.left -= 1 if value is None else 0.5
        if counter.left <= 0:
            self._look()
        return value


class CountTap(Tap):
    """Counts reads, one for each."""

    def __init__(
        self, owner: type, name: str, counter: StepCounter, look: Callable[[], None]
    ) -> None:
        super().__init__(owner, name)
        self._counter = counter
        self._look = look

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return super().__get__(instance, owner)
        counter = self._counter
        counter.left -= 1
        if counter.left <= 0:
            self._look()
        value = instance.__dict__.get(self._name, self._default)
        if value is _MISSING:
            raise AttributeError(self._name)
        return value


class SetTap(CountTap):
    """Counts how often the attribute is set to something other than zero."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None and self._name in instance.__dict__:
            return instance.__dict__[self._name]
        return Tap.__get__(self, instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value
        if value:
            counter = self._counter
            counter.left -= 1
            if counter.left <= 0:
                self._look()
