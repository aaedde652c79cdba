"""The same report without folders and without the name of the machine, for showing to others.

File names stay: a finding without them is none. Folders go wherever they stand, in fields that hold
a path, in commands, in sentences and in source.
"""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from leakscope.model import Exhibit

_HIDDEN = "…/"
_HOST = "this machine"
_FIELDS = ("file",)
_SHORTEST_HOST = 3
# A path from the root, or one that begins at home or above: its folders go, its last name stays.
_ABSOLUTE = re.compile(r"(?<![\w.…/<])(?:~|\.\.?)?/(?:[^/\s'\"`:;,()<>|=]+/)+")


def redacted(exhibit: Exhibit) -> Exhibit:
    """Folders replaced by `…/` in every string of the report and of the picture."""
    plain = msgspec.to_builtins(exhibit, enc_hook=_number)
    folders = sorted({os.path.dirname(path) for path in _paths(plain)} - {""}, key=len)
    known = [re.compile(rf"(?<![\w.…/]){re.escape(folder)}/") for folder in reversed(folders)]
    host = exhibit.report.machine.host

    def hide(words: str) -> str:
        for folder in known:
            words = folder.sub(_HIDDEN, words)
        words = _ABSOLUTE.sub(_HIDDEN, words)
        return words.replace(host, _HOST) if len(host) >= _SHORTEST_HOST else words

    return msgspec.convert(_each(plain, hide), Exhibit)


def _paths(value: Any) -> list[str]:
    """What stands in fields that hold the path of a file."""
    if isinstance(value, dict):
        own = [value[name] for name in _FIELDS if isinstance(value.get(name), str)]
        return own + [path for item in value.values() for path in _paths(item)]
    if isinstance(value, list | tuple):
        return [path for item in value for path in _paths(item)]
    return []


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _each(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each(item, change) for item in value]
    return value


def _number(value: Any) -> Any:
    """numpy's scalars are numbers too, though msgspec does not know them."""
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value)} has no place in a report")
