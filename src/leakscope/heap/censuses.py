"""Bytes by role on each device, as the last heap snapshot of each process has them."""

from __future__ import annotations

from pathlib import Path

from leakscope.heap.contents import bytes_by_role
from leakscope.heap.groups import read_groups
from leakscope.model import Census, Snapshot, Tally
from leakscope.record.reader import Recording

_ALLOCATED = ".allocated_bytes"
_UNMATCHED = "none"


def device_censuses(recording: Recording) -> list[Census]:
    """One census for each device that a process uses."""
    last = {one.process: one for one in recording.snapshots if one.file}
    found = []
    for one in last.values():
        devices = [name for name in one.values if name.endswith(_ALLOCATED) and ":" in name]
        if devices:
            found += _censuses(Path(recording.directory, one.file), one, devices)
    return found


def _censuses(file: Path, header: Snapshot, counters: list[str]) -> list[Census]:
    groups = read_groups(file) if file.exists() else None
    if groups is None:
        return []
    found = []
    for counter in counters:
        device = counter.removesuffix(_ALLOCATED)
        roles = bytes_by_role(groups, device)
        left = header.values[counter] - sum(size for _, size in roles.values())
        tallies = [
            Tally("torch.Tensor", role, count, size) for role, (count, size) in roles.items()
        ]
        if left > 0:
            tallies.append(Tally("torch.Tensor", _UNMATCHED, 0, left))
        found.append(Census(header.at, header.process, device, tuple(tallies)))
    return found
