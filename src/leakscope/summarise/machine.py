"""The machine of a run, with what the program itself was seen to load and to be started with."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from leakscope.model import Loaded, Machine, ProcessStart
from leakscope.record.reader import Recording

START_METHOD = "workers.start_method"
THREADS = "process.threads_count"

_SPAWN = "multiprocessing.spawn"
_FORKSERVER = "multiprocessing.forkserver"


def machine_of(recording: Recording) -> Machine:
    """The header's machine; what is known of the program's own processes comes before it."""
    machine = recording.run.machine
    starts = recording.starts
    loaded = sorted(
        recording.loaded.values(), key=lambda one: _is_main(starts.get(one.process)), reverse=True
    )
    main = next((start for start in starts.values() if start.kind == "main"), None)
    allocators = {
        start.environment["allocator"]
        for start in starts.values()
        if "allocator" in start.environment
    }
    return replace(
        machine,
        python=main.python if main is not None and main.python else machine.python,
        allocator=", ".join(sorted(allocators)) or machine.allocator,
        allocator_settings=_merged(loaded, "settings") or machine.allocator_settings,
        packages=_merged(loaded, "packages") or machine.packages,
        builds=_merged(loaded, "builds") or machine.builds,
        libraries=_merged(loaded, "libraries") or machine.libraries,
        facts=dict(sorted({**machine.facts, **dict(_seen(recording, main))}.items())),
    )


def _merged(loaded: list[Loaded], field: str) -> dict[str, str]:
    """The main process's word counts; the others add what it lacks."""
    found: dict[str, str] = {}
    for one in loaded:
        for name, value in getattr(one, field).items():
            found.setdefault(name, value)
    return dict(sorted(found.items()))


def _is_main(start: ProcessStart | None) -> bool:
    return start is not None and start.kind == "main"


def _seen(recording: Recording, main: ProcessStart | None) -> Iterator[tuple[str, str]]:
    if methods := start_methods(recording):
        yield START_METHOD, " and ".join(methods)
    threads = [
        sample.values["threads_count"]
        for sample in recording.samples
        if main is not None and sample.process == main.process and "threads_count" in sample.values
    ]
    if threads:
        yield THREADS, str(max(threads))


def start_methods(recording: Recording) -> tuple[str, ...]:
    """How Python workers were started, from the command lines of the tree: none if there are
    none."""
    by_pid = {start.pid: start for start in recording.starts.values()}
    found = set()
    for start in recording.starts.values():
        parent = by_pid.get(start.parent_pid)
        if parent is None or start.kind in ("main", "helper"):
            continue
        line, above = " ".join(start.command), " ".join(parent.command)
        if _FORKSERVER in above:
            found.add("forkserver")
        elif _SPAWN in line and _SPAWN not in above:
            found.add("spawn")
        elif line and line == above and start.process in recording.followed:
            found.add("fork")
    return tuple(sorted(found))
