"""Where paths begin, in the order in which a programmer would name them.

Everything that the first stage leads to is named by it, then the second stage names what is left,
and so on. So the order says who is the better name:

1. the program's own modules, `__main__` first: a global variable lives as long as the program;
2. local variables of the program's own running functions, outermost in, each function a stage of
   its own: what `main()` holds in `trainer` is `trainer`, not the `self` of the method that runs;
3. threads, then the functions that run in them: a thread's `self` is better named by the thread;
4. other modules;
5. local variables of running functions of libraries. After modules, because a function is a name
   only while it runs: what a library keeps in a module is found there in every snapshot;
6. leakscope itself. What only it leads to is its own memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from os.path import basename, dirname, splitext
from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import Indices, Numbers
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.model import LinkKind
from leakscope.record.snapshot_file import LocalRoot, ModuleRoot, OtherRoot, SnapshotMeta

_INSTALLED = ("/site-packages/", "/dist-packages/")
_DIGITS = re.compile(r"\d+")
_MAIN = "__main__"
_MAIN_THREADS = ("", "MainThread")
_OURS = "leakscope"


class Root(NamedTuple):
    """How a reader would say that something is alive by itself."""

    via: str
    kind: str
    name: str = ""
    file: str = ""
    scope: str = ""
    line: int = 0
    text: str = ""
    """What it is recognized by in another snapshot, if that is not `via`."""

    @property
    def identity(self) -> str:
        return self.text or self.via


class Stage(NamedTuple):
    """Roots that are searched from together, so that the nearest one gives a node its name."""

    roots: list[Root]
    nodes: Indices
    which: Numbers
    """Index in `roots` of each node's."""


class Roots(NamedTuple):
    """The roots of a snapshot."""

    stages: list[Stage]
    """Of the program; the best names first."""
    ours: Stage
    """Of leakscope."""

    def module_nodes(self) -> Indices:
        """The namespaces of the program's modules."""
        found = [_modules_in(stage) for stage in self.stages]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def our_module_nodes(self) -> Indices:
        return _modules_in(self.ours)


class Owners:
    """Tells the program's own files from libraries and from leakscope."""

    def __init__(self, meta: SnapshotMeta) -> None:
        files = {module.name: module.file for module in meta.modules}
        self._standard_library = _folder(files.get("os", ""))
        self._ours = _folder(files.get(_OURS, ""))
        self.files = files

    def is_of_the_program(self, file: str) -> bool:
        """False for the standard library, installed packages, and leakscope. Text typed in counts
        as the program's."""
        if not file or any(part in file for part in _INSTALLED) or file.startswith("<frozen "):
            return False
        return not file.startswith((self._standard_library, self._ours))

    def is_ours(self, file: str) -> bool:
        return file.startswith(self._ours)


def find_roots(snapshot: HeapSnapshot) -> Roots:
    """The roots of a snapshot, stage by stage."""
    meta = snapshot.meta
    owners = Owners(meta)
    modules = sorted(meta.modules, key=lambda module: module.name != _MAIN)
    own = [one for one in modules if one.name == _MAIN or owners.is_of_the_program(one.file)]
    ours = [one for one in modules if is_ours(one.name) or owners.is_ours(one.file)]
    taken = {one.address for one in ours}
    own = [one for one in own if one.address not in taken]
    taken.update(one.address for one in own)
    others = [one for one in modules if one.address not in taken]
    running = [one for one in meta.locals if not owners.is_ours(one.file)]
    mine = [one for one in running if owners.is_of_the_program(one.file)]
    in_main = [one for one in mine if one.thread in _MAIN_THREADS]
    in_threads = [one for one in mine if one.thread not in _MAIN_THREADS]
    in_libraries = [one for one in running if not owners.is_of_the_program(one.file)]
    stages: list[list[ModuleRoot | LocalRoot | OtherRoot]] = [
        list(own),
        *_by_frame(in_main),
        list(meta.others),
        *_by_frame(in_threads),
        list(others),
        *_by_frame(in_libraries),
    ]
    our_frames = [one for one in meta.locals if owners.is_ours(one.file)]
    found = [_stage(snapshot, stage) for stage in stages]
    return Roots([one for one in found if one.roots], _stage(snapshot, [*ours, *our_frames]))


def is_ours(module: str) -> bool:
    """Whether a module of this name is leakscope's."""
    return module == _OURS or module.startswith(f"{_OURS}.")


def _by_frame(locals_: list[LocalRoot]) -> list[list[ModuleRoot | LocalRoot | OtherRoot]]:
    """One stage a running function, outermost in."""
    stages: dict[tuple[int, str, str], list[ModuleRoot | LocalRoot | OtherRoot]] = {}
    for one in sorted(locals_, key=lambda one: (one.thread not in _MAIN_THREADS, one.depth)):
        stages.setdefault((one.depth, one.thread, one.function), []).append(one)
    return list(stages.values())


def _stage(snapshot: HeapSnapshot, roots: Iterable[ModuleRoot | LocalRoot | OtherRoot]) -> Stage:
    roots = list(roots)
    nodes = np.array(snapshot.find([root.address for root in roots]), np.int32)
    found = np.flatnonzero(nodes >= 0)
    return Stage([_root(roots[i]) for i in found], nodes[found], np.arange(len(found)))


def _modules_in(stage: Stage) -> Indices:
    is_module = [stage.roots[i].kind == LinkKind.MODULE for i in stage.which]
    return stage.nodes[np.array(is_module, np.bool_)]


def _root(root: ModuleRoot | LocalRoot | OtherRoot) -> Root:
    if isinstance(root, ModuleRoot):
        shown = root.name
        if root.name == _MAIN and root.file:
            shown = splitext(basename(root.file))[0]
        return Root(f"module {shown}", LinkKind.MODULE, root.name, root.file)
    if isinstance(root, LocalRoot):
        kind, joint = (LinkKind.CLOSURE, "of") if root.is_free else (LinkKind.LOCAL, "in")
        via = f"{kind} {root.name} {joint} {root.function}()"
        return Root(via, kind, root.name, root.file, root.function, root.line)
    # Threads are numbered as they are made: more and more of them are one growing group.
    return Root(root.via, root.kind, root.name, text=_DIGITS.sub("#", root.via))


def _folder(file: str) -> str:
    """The folder of a file with its separator; what no path begins with if there is none."""
    return f"{dirname(file)}/" if file else "\0"
