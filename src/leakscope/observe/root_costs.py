"""How much a root tells a reader, as a cost: the cheapest path is the one that is shown."""

from __future__ import annotations

import functools
import re
from types import FunctionType, MethodType

from leakscope.model import Link
from leakscope.observe.anatomy import class_name, is_exactly, is_of_the_user
from leakscope.observe.frames import Local
from leakscope.observe.links import context_type
from leakscope.observe.links_in_code import is_suspended
from leakscope.observe.registries import REGISTRY

LIBRARY_ROOT_COST = 3.0
ARTEFACT_COST = 8.0
"""What a debugger or an interactive session keeps is named only if nothing else is found."""

_ARTEFACT_NAMES = re.compile(r"_+|_i*|_\d+|_i\d+|_[dio]h|Out|In|last_(value|exc|traceback|type)")
_ARTEFACT_FILES = ("/pydevd", "/debugpy/", "/IPython/", "/pdb.py", "/bdb.py")


def tells_enough(links: tuple[Link, ...]) -> bool:
    """A root in the user's own code, under a name of theirs."""
    if links and links[0].kind == REGISTRY:
        return True
    names = [link.name for link in links]
    is_plain = not any(name in ("self", "cls") or is_artefact(name) for name in names)
    return bool(links) and is_plain and is_of_the_user(links[0].file or links[-1].file)


def is_artefact(name: str) -> bool:
    return bool(name) and _ARTEFACT_NAMES.fullmatch(name) is not None


def cost_of_local(local: Local) -> float:
    if any(part in local.file for part in _ARTEFACT_FILES):
        return ARTEFACT_COST
    if not is_of_the_user(local.file):
        return LIBRARY_ROOT_COST + 1
    if local.is_argument:  # who gave it holds it too, and lives longer
        return 3.0 if local.name == "self" else 2.5
    return 1.5 if local.is_free else 1.0


def tells_something(obj: object) -> bool:
    """Does a path that begins here still say something? A bare list or dict does not."""
    kinds = (FunctionType, MethodType, functools.partial, context_type())
    return is_suspended(obj) or is_exactly(obj, *kinds)


def is_iterator(obj: object) -> bool:
    return class_name(type(obj)).endswith("iterator") or is_suspended(obj)
