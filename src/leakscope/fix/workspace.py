"""A program's folder in, a copy of it with the changes made out; the user's files stay alone."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from leakscope import errors
from leakscope.fix.edits import Change
from leakscope.fix.files import changed_files, write_files

_LEFT_OUT = frozenset({".git", ".hg", ".leakscope", "__pycache__", ".mypy_cache", ".pytest_cache"})
_LINKED = frozenset({".venv", "venv", "env", "node_modules", ".tox", "site-packages"})
"""Folders with installed things: the program reads them, and nobody changes them."""

_LARGE_BYTES = 64 << 20
"""A larger file is data: it is linked to, not copied."""

_MOST_BYTES = 1 << 30
_MOST_FILES = 20_000


@dataclass
class Workspace:
    """A copy of the program's folder."""

    source: str
    """The folder that was copied."""
    folder: str
    """Where the copy lies."""
    linked: list[str] = field(default_factory=list)
    """What the copy shares with the folder, because it is large."""

    def inside(self, path: str) -> str:
        """The place of a path in the copy; what lies elsewhere stays where it is."""
        full = os.path.abspath(path)
        if full == self.source:
            return self.folder
        prefix = self.source.rstrip(os.sep) + os.sep
        return os.path.join(self.folder, full.removeprefix(prefix)) if self.holds(full) else path

    def holds(self, path: str) -> bool:
        return os.path.abspath(path).startswith(self.source.rstrip(os.sep) + os.sep)

    def words(self, command: tuple[str, ...], directory: str) -> tuple[str, ...]:
        """The command with the files of the folder replaced by their copies."""
        return (*command[:1], *(self._word(word, directory) for word in command[1:]))

    def _word(self, word: str, directory: str) -> str:
        path = os.path.join(directory, word)
        # What is said from the working directory stays right where that is copied too.
        is_right = not os.path.isabs(word) and self.inside(directory) != directory
        return word if is_right or not os.path.isfile(path) else self.inside(path)


def copy_program(source: str, folder: str, files: Mapping[str, Change]) -> Workspace:
    """Copy a folder, large files as links.

    Raises:
        LeakscopeError: it is too large, or a file to change does not lie in it.
    """
    source = os.path.abspath(source)
    workspace = Workspace(source, os.path.join(folder, os.path.basename(source) or "program"))
    outside = [file for file in files if not workspace.holds(file)]
    if outside:
        raise errors.cannot_copy(source, f"{outside[0]} does not lie in it")
    if source in (os.path.expanduser("~"), os.sep):
        raise errors.cannot_copy(source, "it is a home folder, not one program's")
    total = count = 0
    for path, is_link, size in _contents(source, workspace):
        count, total = count + 1, total + size
        if count > _MOST_FILES or total > _MOST_BYTES:
            raise errors.cannot_copy(source, "it has more than 20,000 files or 1 GiB in it")
        place = workspace.inside(path)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if is_link:
                os.symlink(os.path.realpath(path), place)
            else:
                shutil.copy2(path, place)
        except OSError as error:
            raise errors.cannot_copy(source, f"{path}: {error.strerror or error}") from None
    return workspace


def _contents(source: str, workspace: Workspace) -> Iterator[tuple[str, bool, int]]:
    """(path, whether to link, bytes to copy); sockets and the like are left out."""
    for folder, folders, files in os.walk(source):
        for name in list(folders):
            path = os.path.join(folder, name)
            if name in _LEFT_OUT or path == workspace.folder:
                folders.remove(name)
            elif name in _LINKED or os.path.islink(path):
                folders.remove(name)
                yield path, True, 0
            else:
                os.makedirs(workspace.inside(path), exist_ok=True)
        for name in files:
            path = os.path.join(folder, name)
            try:
                found = os.stat(path)
            except OSError:
                continue
            if not stat.S_ISREG(found.st_mode):
                continue
            is_large = found.st_size > _LARGE_BYTES
            if is_large:
                workspace.linked.append(path)
            yield path, is_large, 0 if is_large else found.st_size


def apply_changes(
    workspace: Workspace, changes: Mapping[str, Change], sources: Mapping[str, str]
) -> None:
    """Make the changes in the copy."""
    at = {file: workspace.inside(file) for file in changes}
    write_files(changed_files(changes, sources, at=at))
