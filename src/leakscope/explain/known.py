"""A suspect in, the known behaviour of a library out: entries in known/*.toml, read once.

An entry names what a library keeps, in which versions, how it is recognised, and what to do. It
adds to what a rule says and never replaces its number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec.structs import replace

from leakscope.attribute.suspect import Suspect
from leakscope.explain.versions import is_within, parts_of
from leakscope.model import Link, Machine

Kind = Literal["cache-bounded", "cache-unbounded", "by-design", "bug", "artefact", "not-a-leak"]
WAITS: Collection[str] = ("cache-bounded", "by-design", "artefact", "not-a-leak")
"""Told after a leak of the user's own: it ends by itself, or is what the library promises."""

_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|python3\.\d+)/")
_SAME = {"tensorflow": ("tensorflow", "tensorflow-cpu")}


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a suspect is recognised: any of the patterns, and all of the rest."""

    holders: tuple[str, ...] = ()
    """`module:name` or `Class#attribute`, * for anything: what holds, nearest to what grows."""
    items: tuple[str, ...] = ()
    """The same for what one item leads to, in a container of anybody's."""
    frames: tuple[str, ...] = ()
    """Regular expressions for `file:function` of the Python frames between the user's line and the
    native memory that it made."""
    kind: str = ""
    """Of the holding."""
    environment: dict[str, str] = {}
    """Setting and its value; an empty value stands for one that is not set."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    kind: Kind
    title: str
    grows_with: str
    fix: str
    url: str
    applies: dict[str, str]
    """Package and versions: `{torch = ">=2.0,<2.4"}`; `*` for all."""
    match: Match


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entry: tuple[Entry, ...]


def read_entries(text: str, file: str) -> tuple[Entry, ...]:
    """The entries of one file; a ValueError names the file, the entry and what is wrong with it."""
    try:
        entries = msgspec.toml.decode(text, type=_File).entry
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: {error}") from error
    for entry in entries:
        if wrong := "; ".join(_wrong_with(entry)):
            raise ValueError(f"{file}: entry {entry.id}: {wrong}")
    return entries


@cache
def load_known() -> tuple[Entry, ...]:
    """All entries, file by file, in the order they are written."""
    folder = files("leakscope.explain") / "known"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=str)
    return tuple(
        entry
        for file in found
        for entry in read_entries(file.read_text(encoding="utf-8"), file.name)
    )


def known_for(
    suspect: Suspect, machine: Machine, own_files: Collection[str]
) -> tuple[Entry, bool] | None:
    """The first entry that matches, and whether the library itself keeps it.

    `own_files` are the program's own: what one of their names holds is not the library's."""
    for entry in load_known():
        if not _applies(entry, machine) or not _is_set(entry.match.environment, machine):
            continue
        if _is_held(entry.match, suspect, own_files):
            return entry, True
        if _is_kept(entry.match, suspect):
            return entry, False
    return None


def _is_held(match: Match, suspect: Suspect, own_files: Collection[str]) -> bool:
    holding = suspect.holding
    if holding.kind == "native":
        return any(
            re.search(pattern, frame)
            for pattern in match.frames
            for frame in _library_frames(suspect, own_files)
        )
    above = _with_modules(holding.path[: holding.grows_at + 1])
    own = [place for place, link in enumerate(above) if link.name and link.file in own_files]
    # A tool may hold names of the program's own module: `Out`, `__warningregistry__`.
    named = [link for link in above if link.kind == "global"]
    nearest = above[own[-1] + 1 :] if own else above
    return any(
        _is_named(pattern, link)
        for pattern in match.holders
        for link in (named if pattern.startswith("*:") else nearest)
    )


def _with_modules(path: Sequence[Link]) -> list[Link]:
    """A name of a module that is built in has no file: it stands below its module."""
    found: list[Link] = []
    for link in path:
        above = found[-1] if found else None
        if link.kind == "global" and not link.file and above is not None and above.kind == "module":
            found.append(replace(link, file=f"/python3.0/{above.name.replace('.', '/')}.py"))
        else:
            found.append(link)
    return found


def _is_kept(match: Match, suspect: Suspect) -> bool:
    holding = suspect.holding
    if match.kind:
        return holding.kind == match.kind
    below = holding.path[holding.grows_at + 1 :]
    return any(_is_named(pattern, link) for pattern in match.items for link in below)


def _library_frames(suspect: Suspect, own_files: Collection[str]) -> Iterator[str]:
    """The innermost frames, up to the user's line."""
    for tally in suspect.holding.sites:
        for frame in tally.frames:
            if frame.file in own_files:
                break
            yield f"{frame.file}:{frame.function}"


def _is_named(pattern: str, link: Link) -> bool:
    if "#" in pattern:
        owner, _, name = pattern.partition("#")
        scope = link.scope.rpartition(".")[2]
        return bool(scope) and fnmatchcase(scope, owner) and fnmatchcase(link.name, name)
    module, _, name = pattern.partition(":")
    where = module_of(link)
    return bool(where) and fnmatchcase(where, module) and fnmatchcase(link.name, name)


def module_of(link: Link) -> str:
    """`torch._dynamo.guards`, from the file a name is written in."""
    if link.kind == "module":
        return link.name
    path = _INSTALLED.sub("", link.file)
    if path == link.file or not path.endswith(".py"):
        return path.rpartition("/")[2].removesuffix(".py")
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _applies(entry: Entry, machine: Machine) -> bool:
    return all(_has(machine, package, versions) for package, versions in entry.applies.items())


def _has(machine: Machine, package: str, versions: str) -> bool:
    """The path already shows that the package is there; its version matters where one is named."""
    if versions == "*":
        return True
    known: Mapping[str, str] = {**machine.packages, "python": machine.python}
    names = _SAME.get(package, (package,))
    found = next((known[name] for name in names if name in known), None)
    return found is not None and is_within(found, versions)


def _is_set(environment: Mapping[str, str], machine: Machine) -> bool:
    return all(
        machine.allocator_settings.get(name, "") == value for name, value in environment.items()
    )


def _wrong_with(entry: Entry) -> Iterator[str]:
    match = entry.match
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.id):
        yield "its id is not of small letters, digits and hyphens"
    if not (match.holders or match.items or match.frames or match.kind):
        yield "it matches nothing"
    for pattern in (*match.holders, *match.items):
        if (pattern.count(":") == 1) == (pattern.count("#") == 1):
            yield f"`{pattern}` is neither module:name nor Class#attribute"
    for pattern in match.frames:
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"`{pattern}` is no regular expression: {error}"
    if not entry.url.startswith("https://"):
        yield "its url does not begin with https://"
    yield from _wrong_versions(tuple(entry.applies.values()))
    for name in ("title", "grows_with", "fix"):
        if not getattr(entry, name).strip() or getattr(entry, name).endswith("."):
            yield f"its {name} is empty or ends with a full stop"


def _wrong_versions(versions: Sequence[str]) -> Iterator[str]:
    if not versions:
        yield "it applies to no package"
    for one in versions:
        if one != "*" and parts_of(one) is None:
            yield f"`{one}` names no versions; for example >=2.0,<2.4"
