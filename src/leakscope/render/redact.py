"""The same report without folders and without the name of the machine, for showing to others.

File names stay: a finding without them is none. Folders go wherever they stand, in fields that hold
a path, in commands, in sentences and in source.
"""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec
from msgspec.structs import replace

from leakscope.model import Exhibit

_HIDDEN = "…/"
_HOST = "this machine"
_SHORTEST_HOST = 3

_NAME = r"[^/\s'\"`:;,()<>|=]+"
_FOLDERS = re.compile(
    r"(?P<url>\bhttps?://\S+)"
    # In quotes a path may have blanks.
    r"|(?P<quote>['\"`])(?:~|\.\.?)?/(?:[^'\"`\n]*/)?(?=[^'\"`/\n]*(?P=quote))"
    # From the root, from home, or from above.
    rf"|(?<![\w.…/<])(?:~|\.\.?)?/(?:{_NAME}/)+"
    # To a file with an ending: `client/train.py`, but neither `MiB/step` nor `--- a/train.py`.
    rf"|(?<![\w.…/<])(?![ab]/[^/\s]*$)(?:{_NAME}/)+(?={_NAME}?\.[A-Za-z]\w{{0,7}}\b)",
    re.MULTILINE,
)


def redacted(exhibit: Exhibit) -> Exhibit:
    """Folders replaced by `…/` in every string of the report and of the picture."""
    plain = msgspec.to_builtins(exhibit, enc_hook=_number)
    folders = sorted({os.path.dirname(path) for path in _paths(plain)} - {""}, key=len)
    known = [re.compile(rf"(?<![\w.…/]){re.escape(folder)}/") for folder in reversed(folders)]
    host = exhibit.report.machine.host

    def hide(words: str) -> str:
        for folder in known:
            words = folder.sub(_HIDDEN, words)
        words = _FOLDERS.sub(_hidden, words)
        return words.replace(host, _HOST) if len(host) >= _SHORTEST_HOST else words

    hidden = msgspec.convert(_each(plain, hide), Exhibit)
    command = tuple(word.removeprefix(_HIDDEN) for word in hidden.report.command)
    return replace(hidden, report=replace(hidden.report, command=command))


def _hidden(found: re.Match[str]) -> str:
    return found["url"] or (found["quote"] or "") + _HIDDEN


def _paths(value: Any) -> list[str]:
    """What stands in fields that hold the path of a file, and the words of commands."""
    if isinstance(value, dict):
        own = [value["file"]] if isinstance(value.get("file"), str) else []
        words = value.get("command")
        own += words if isinstance(words, list | tuple) else []
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
