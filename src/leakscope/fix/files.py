"""Changes in, changed files out: as they are on the disk, and only if they are what was run."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Mapping

from leakscope import errors
from leakscope.fix.edits import CannotEditError, Change


def changed_files(
    changes: Mapping[str, Change],
    sources: Mapping[str, str],
    *,
    at: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """The new content of each file; nothing is written.

    Args:
        changes: by the path that the run had.
        sources: text of the files, as they were recorded.
        at: where the files lie now, if not where they lay when the program ran.

    Raises:
        LeakscopeError: a file is gone, differs from what was run, or cannot be changed.
    """
    from leakscope.fix.rewrite import rewrite

    files: dict[str, bytes] = {}
    for file, change in changes.items():
        path = (at or {}).get(file, file)
        text, encoding = _read(path)
        if "\n".join(text.splitlines()) != "\n".join(sources[file].splitlines()):
            raise errors.source_changed(path, "its text is not the one that was recorded")
        try:
            files[path] = rewrite(text, change.edits, path).encode(encoding)
        except (CannotEditError, UnicodeEncodeError) as error:
            raise errors.source_changed(path, str(error)) from None
    return files


def _read(path: str) -> tuple[str, str]:
    """The text with its own line ends, and its encoding."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding), encoding
    except OSError as error:
        raise errors.source_changed(path, error.strerror or str(error)) from None
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise errors.source_changed(path, f"it cannot be read as Python: {error}") from None


def write_files(files: Mapping[str, bytes]) -> None:
    """All of them or, if one cannot be written, that one is told; each is replaced at once."""
    for path, content in files.items():
        beside = f"{path}.leakscope-new"
        try:
            mode = os.stat(path).st_mode
            with open(beside, "wb") as file:
                file.write(content)
            os.chmod(beside, mode & 0o7777)
            os.replace(beside, os.path.realpath(path))
        except OSError as error:
            raise errors.cannot_write(path, error.strerror or str(error)) from None
