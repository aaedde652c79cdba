"""The program's own files, whose text travels in the recording: a report can be made elsewhere
and later, when the files have changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from leakscope.observe.anatomy import is_of_the_user, module_dict, module_file

_MOST_FILES = 200
_MOST_BYTES = 1 << 20


def program_files() -> Iterator[tuple[str, str]]:
    """(file, text) of every loaded module that is neither Python's, nor installed, nor ours."""
    told: set[str] = set()
    for module in list(sys.modules.values()):
        file = module_file(module_dict(module))
        is_new = file.endswith(".py") and file not in told and is_of_the_user(file)
        if not is_new or len(told) >= _MOST_FILES:
            continue
        told.add(file)
        if (text := _read(file)) is not None:
            yield file, text


def _read(file: str) -> str | None:
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return None
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return None
