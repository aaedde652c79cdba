"""Which recording is meant: a folder, a script, a process, or the newest there is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from leakscope import errors
from leakscope.inject import RUN_DIR
from leakscope.model import Run
from leakscope.observe.processes.proc_files import environment_of, find_tree
from leakscope.record.format import RUN_FILE, decode_run, name_process, process_of

FOLDER = ".leakscope"


def find_recording(word: str | None) -> str:
    """The folder of the recording that the user means.

    Raises:
        LeakscopeError: there is none, or the process is not watched.
    """
    if word is None:
        return newest()
    if word.isdecimal() and not os.path.isdir(word):
        return watching(int(word))
    if os.path.isfile(os.path.join(word, RUN_FILE)) or not word.endswith(".py"):
        return word
    return of_script(word)


def of_script(path: str) -> str:
    """The newest recording here whose command names the script; the path itself if none does."""
    name = os.path.basename(path)
    found = [
        (made.started_wall_ns, folder)
        for folder, made in _recordings(FOLDER)
        if any(os.path.basename(word) == name for word in made.command)
    ]
    return max(found)[1] if found else path


def newest(folder: str = FOLDER) -> str:
    found = [(made.started_wall_ns, path) for path, made in _recordings(folder)]
    if not found:
        raise errors.no_recording(folder)
    return max(found)[1]


def watching(pid: int) -> str:
    """The recording that is being made of a process, of one above it, or by it."""
    if not os.path.isdir(f"/proc/{pid}"):
        raise errors.not_watched(pid, "there is no such process")
    # The program and all below it have the folder in their environment; `leakscope run` itself,
    # which may be what the user sees first, has it in that of its child.
    family = [*_ancestors(pid), *(found.pid for found in find_tree(pid))]
    for one in family:
        directory = environment_of(one, (RUN_DIR,)).get(RUN_DIR)
        if directory and os.path.isfile(os.path.join(directory, RUN_FILE)):
            return directory
    for one in family:  # `with leakscope.watch()` and `leakscope attach` change no environment
        for directory in _made_of(one):
            return directory
    raise errors.not_watched(pid, "neither it nor a process above or below it writes a recording")


def _ancestors(pid: int) -> Iterator[int]:
    """The process itself and those it comes from."""
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                pid = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError):
            return


def _made_of(pid: int) -> Iterator[str]:
    """Recordings that name the process, in its own folder and in ours."""
    try:
        process = name_process(pid)
        folders = dict.fromkeys((os.readlink(f"/proc/{pid}/cwd"), os.getcwd()))
    except (OSError, ValueError):
        return
    for folder in folders:
        for directory, made in _recordings(os.path.join(folder, FOLDER)):
            has_own = any(process_of(file) == process for file in os.listdir(directory))
            if made.settings.get("process") == process or has_own:
                yield directory


def _recordings(folder: str) -> Iterator[tuple[str, Run]]:
    """Every recording under a folder whose header can be read."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        directory = os.path.join(folder, name)
        try:
            with open(os.path.join(directory, RUN_FILE), "rb") as file:
                yield directory, decode_run(file.read())
        except (OSError, msgspec.MsgspecError):
            continue
