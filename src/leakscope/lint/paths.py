"""Paths in, files to read out; and a file's text, whatever its encoding."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PASSED_OVER = frozenset({"__pycache__", "node_modules", "build", "dist", "site-packages", "venv"})
_ENDINGS = (".py", ".pyi")


class Unread(NamedTuple):
    """A file that could not be read, and why."""

    file: str
    why: str


def python_files(paths: Iterable[str]) -> Iterator[str]:
    """Files as they are named; of folders every Python file, hidden ones and environments not."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, below, names in os.walk(path):
            below[:] = sorted(
                one for one in below if not one.startswith(".") and one not in _PASSED_OVER
            )
            for name in sorted(names):
                if name.endswith(_ENDINGS):
                    yield os.path.join(folder, name)


def read(file: str) -> str | Unread:
    """The text of a file in the encoding that its first lines name."""
    try:
        with tokenize.open(file) as opened:
            return opened.read()
    except OSError as error:
        return Unread(file, error.strerror or str(error))
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return Unread(file, f"it is no text in the encoding it names ({type(error).__name__})")
