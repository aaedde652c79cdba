"""What is in memory, by holder, as the last heap snapshot of each process has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakscope.heap.contents import Content, contents_of, on_devices
from leakscope.heap.groups import Groups, group_objects
from leakscope.heap.retained import Retained
from leakscope.heap.snapshot import read_snapshot
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
        snapshot = read_snapshot(file) if file.exists() else None
        if snapshot is None:
            continue
        groups = group_objects(snapshot)
        retained = Retained(snapshot)
        held = tuple(_occupied(one, groups, retained) for one in contents_of(groups))
        total = int(groups.bytes.sum()) - on_devices(groups)
        name = names.get(process, process)
        found.append(HeapContents(name, header.at.step, header.objects, total, held))
    return tuple(found)


def _occupied(one: Content, groups: Groups, retained: Retained) -> Occupied:
    holders, everything = groups.nodes_in([one.group]), groups.nodes_in(one.groups)
    alone = retained.bytes_among(holders, everything)
    others = max(int(groups.bytes[list(one.groups)].sum()) - alone, 0)
    holder = words_of(one.path)
    size = one.size_bytes
    return Occupied(
        one.role, one.item, holder, one.number, size, retained_bytes=max(size - others, 0)
    )


def words_of(links: Sequence[Link]) -> str:
    """`module train · .history list · [x] Tensor [] float32`."""
    return " · ".join(f"{link.via} {link.type}".strip() for link in links)
