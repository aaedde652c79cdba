"""The parts of an object, read without running its code.

Python asks the object for nearly everything: `isinstance` its `__class__`, `getattr` its
`__getattr__`, `in` its `__eq__`. Here the class is what `type()` says, and attributes come from
the slots that Python itself made for them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

_name_of_class: Any = type.__dict__["__name__"]
_qualname_of_class: Any = type.__dict__["__qualname__"]
_module_of_class: Any = type.__dict__["__module__"]
_mro_of_class: Any = type.__dict__["__mro__"]
_GRAPHS = "tensorflow.python.framework.func_graph"
_dict_offset: Any = type.__dict__["__dictoffset__"]
_dict_of_class: Any = type.__dict__["__dict__"]
_dict_of_module: Any = _dict_of_class.__get__(ModuleType)["__dict__"]

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NUMBERS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_OTHER_KINDS = {"b": "bool", "O": "object", "S": "bytes", "U": "str", "V": "void"}
_MOMENTS = {"M": "datetime64", "m": "timedelta64"}


def plain(text: object) -> str:
    """The text, if it is a string and no class derived from it, which would answer for itself."""
    return text if type(text) is str else ""


# ── classes ──


def mro_of(kind: type) -> tuple[type, ...]:
    return _mro_of_class.__get__(kind) or ()


def is_exactly(obj: object, *kinds: Any) -> bool:
    """Is its class one of these? `in` would ask the class of the class, which may be the user's."""
    own = type(obj)
    return any(own is kind for kind in kinds)


def is_kind(obj: object, *kinds: type) -> bool:
    """What `isinstance` would say if the object could not lie."""
    own = mro_of(type(obj))
    return any(base is kind for base in own for kind in kinds)


def class_dict(kind: type) -> Mapping[str, Any]:
    namespace: Mapping[str, Any] = _dict_of_class.__get__(kind)
    return namespace


def class_name(kind: type) -> str:
    return plain(_name_of_class.__get__(kind)) or "object"


def class_qualname(kind: type) -> str:
    return plain(_qualname_of_class.__get__(kind)) or "object"


def class_module(kind: type) -> str:
    with suppress(AttributeError):
        return plain(_module_of_class.__get__(kind))
    return ""


def class_file(kind: type) -> str:
    return module_file(module_dict(sys.modules.get(class_module(kind))))


# ── modules and files ──


def module_dict(module: object) -> dict[str, Any]:
    if issubclass(type(module), ModuleType):
        namespace = _dict_of_module.__get__(module)
        if type(namespace) is dict:
            return namespace
    return {}


def module_file(namespace: dict[str, Any]) -> str:
    return plain(namespace.get("__file__"))


def is_of_the_user(file: str) -> bool:
    """False for the standard library and installed packages. Text typed in counts as the user's."""
    if any(part in file for part in _INSTALLED) or file.startswith(("<frozen ", OUR_FOLDER)):
        return False
    return bool(file) and not file.startswith(_STANDARD_LIBRARY)


# ── instances ──


def dict_of(obj: object) -> dict[Any, Any] | None:
    """The `__dict__` of an object, if it really has one.

    Asking makes Python build the dict for an instance that did without (some 100 bytes, for good),
    so ask for the objects of a path only.
    """
    for kind in mro_of(type(obj)):
        descriptor: Any = class_dict(kind).get("__dict__")
        if is_exactly(descriptor, GetSetDescriptorType, MemberDescriptorType):
            with suppress(AttributeError, TypeError):
                found = descriptor.__get__(obj)
                return found if type(found) is dict else None
    if _dict_offset.__get__(type(obj)) and _GRAPHS in sys.modules:
        # A class written in C that shows its dict under no name: TensorFlow's graphs.
        return next((one for one in gc.get_referents(obj) if type(one) is dict), None)
    return None


def attribute_of(obj: object, name: str) -> Any:
    """The value an instance has under that name in its own `__dict__`; None without."""
    return (dict_of(obj) or {}).get(name)


def key_of(namespace: dict[Any, Any], value: object) -> str:
    """The name under which a namespace has this very value; empty without."""
    with suppress(RuntimeError):  # another thread added a name meanwhile
        for key, held in zip(dict.keys(namespace), dict.values(namespace), strict=False):
            if held is value and type(key) is str:
                return key
    return ""


# ── functions ──


def code_of(function: object) -> CodeType | None:
    if type(function) is MethodType:
        function = function.__func__
    return function.__code__ if type(function) is FunctionType else None


def function_name(function: object) -> str:
    """Qualified name of a function as its source has it; the name of its class for other things."""
    code = code_of(function)
    if code is not None:
        return code.co_qualname
    if type(function) is BuiltinFunctionType:
        return function.__name__
    return class_qualname(function if type(function) is type else type(function))


# ── words ──


def describe(obj: object) -> str:
    """What an object is, in a few words: `list`, `Trainer`, `Tensor [64, 512] float32`."""
    try:
        return _describe(obj)
    except Exception:  # noqa: BLE001 - an odd array or tensor is still an object of its class
        return class_name(type(obj))


def _describe(obj: object) -> str:
    kind = type(obj)
    name = class_name(kind)
    if issubclass(kind, type):
        return "class"
    if issubclass(kind, ModuleType):
        return "module"
    if name == "_lru_cache_wrapper":
        return "lru_cache"
    if is_exactly(obj, *_plain_tensor_types()):
        return f"{name} {_tensor_words(obj)}"
    array = _ndarray()
    if array is not None and issubclass(kind, array):
        return f"{name} {_array_words(array, obj)}"
    return name


def _plain_tensor_types() -> tuple[Any, ...]:
    """Tensor and Parameter themselves: a class derived from them may answer with its own code."""
    tensor = module_dict(sys.modules.get("torch")).get("Tensor")
    parameter = module_dict(sys.modules.get("torch.nn.parameter")).get("Parameter")
    return tuple(kind for kind in (tensor, parameter) if kind is not None)


def _tensor_words(tensor: Any) -> str:
    with sys.modules["torch"]._C.DisableTorchFunction():
        dtype = str(tensor.dtype).removeprefix("torch.")
        words = f"{list(tensor.shape)} {dtype}"
        graph = tensor.grad_fn
    return words if graph is None else f"{words}, grad_fn {class_name(type(graph))}"


def _ndarray() -> Any:
    return module_dict(sys.modules.get("numpy")).get("ndarray")


def _array_words(array: Any, obj: object) -> str:
    shape = array.__dict__["shape"].__get__(obj)
    dtype = array.__dict__["dtype"].__get__(obj)
    kind, size = dtype.kind, dtype.itemsize
    if kind in _NUMBERS:
        words = f"{_NUMBERS[kind]}{8 * size}"
    else:
        words = _OTHER_KINDS.get(kind) or _MOMENTS.get(kind) or "void"
    return f"{list(shape)} {words}"
