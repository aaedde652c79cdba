"""What is in memory, by holder, as the last heap snapshot of each process has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakscope.heap.contents import contents_of, on_devices
from leakscope.heap.groups import read_groups
from leakscope.model import HeapContents, Link, Occupied
from leakscope.record.reader import Recording
from leakscope.summarise.processes import name_processes


def contents_now(recording: Recording) -> tuple[HeapContents, ...]:
    """The contents of each process that was looked at, in the order of their first snapshot."""
    names = name_processes(recording)
    last = {one.process: one for one in recording.snapshots if one.file}
    found = []
    for process, header in last.items():
        file = Path(recording.directory, header.file)
        groups = read_groups(file) if file.exists() else None
        if groups is None:
            continue
        held = tuple(
            Occupied(one.role, one.item, words_of(one.path), one.number, one.size_bytes)
            for one in contents_of(groups)
        )
        total = int(groups.bytes.sum()) - on_devices(groups)
        name = names.get(process, process)
        found.append(HeapContents(name, header.at.step, header.objects, total, held))
    return tuple(found)


def words_of(links: Sequence[Link]) -> str:
    """`module train · .history list · [x] Tensor [] float32`."""
    return " · ".join(f"{link.via} {link.type}".strip() for link in links)
