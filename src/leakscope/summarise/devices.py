"""Four levels of each device's memory that add up: driver, reserved, in use, tensors by role."""

from __future__ import annotations

from bisect import bisect_left
from statistics import median
from typing import NamedTuple

from leakscope import text
from leakscope.judge.series import ALLOCATED, RESERVED, RunSeries
from leakscope.model import DeviceLevels, Sample
from leakscope.record.reader import Recording

CONTEXT = "context and libraries, outside of the allocator"
UNUSED = "reserved by the allocator, free for reuse"
UNMATCHED = "in use without a tensor, held by C++ only"
WORKSPACES = "workspaces of libraries"
POOLS = "pools of CUDA graphs"
REST = "tensors the program holds"
_NEAR_NS = 100_000_000
_ROLES = {
    "parameter": "parameters",
    "gradient": "gradients",
    "buffer": "buffers",
    "optimizer state": "optimizer state",
    "saved for backward": "saved for backward",
    "graph pool": POOLS,
    "workspace": WORKSPACES,
    "none": UNMATCHED,
}


class Driver(NamedTuple):
    """One device as the driver saw it."""

    total_bytes: int
    of_context: int | None
    """Of this process, beside what its allocator has reserved."""
    of_others: int


def devices_of(run: RunSeries, names: dict[str, str]) -> tuple[DeviceLevels, ...]:
    """Each device of each process, at the last moment that was sampled from inside."""
    found = []
    for (process, device), series in run.on_devices.items():
        if ALLOCATED not in series or RESERVED not in series:
            continue
        samples = [
            one for one in run.recording.samples if one.process == process and one.probe == device
        ]
        if samples:
            found.append(_levels(run.recording, process, device, samples[-1], names))
    return tuple(found)


def _levels(
    recording: Recording, process: str, device: str, last: Sample, names: dict[str, str]
) -> DeviceLevels:
    start = recording.starts.get(process)
    uuid, _, model = (start.environment.get(device, "") if start else "").partition(" ")
    driver = _driver(recording, process, device, uuid)
    allocated, reserved = last.values["allocated_bytes"], last.values["reserved_bytes"]
    parts: dict[str, int] = {}
    of_process = None
    if driver is not None and driver.of_context is not None:
        parts[CONTEXT] = driver.of_context
        of_process = reserved + driver.of_context
    if reserved > allocated:
        parts[UNUSED] = reserved - allocated
    left = allocated
    for role, size in _census(recording, process, device).items():
        if role in _ROLES and (taken := min(size, left)) > 0:
            parts[_ROLES[role]] = taken
            left -= taken
    if left:
        parts[REST] = left
    total = driver.total_bytes if driver is not None else last.values.get("total_bytes")
    return DeviceLevels(
        device=device,
        name=model or device,
        process=names.get(process, process),
        total_bytes=total,
        driver_bytes=of_process,
        reserved_bytes=reserved,
        allocated_bytes=allocated,
        others_bytes=driver.of_others if driver is not None else None,
        parts=parts,
        at_step=last.at.step,
        says=_says(driver, of_process or reserved, last),
    )


def _says(driver: Driver | None, whole: int, last: Sample) -> str:
    allocated, reserved = last.values["allocated_bytes"], last.values["reserved_bytes"]
    says = f"{text.size(whole)} of this process"
    if driver is not None:
        says += f", {text.size(driver.of_others)} of processes outside this run"
    says += f"; {text.size(allocated)} in use of {text.size(reserved)} reserved"
    says += f". A restart gives back {text.size(whole)}"
    free = max(reserved - allocated - last.values.get("split_bytes", 0), 0)
    if free:
        says += f", torch.cuda.empty_cache() {text.size(free)} of it"
    return says


def _census(recording: Recording, process: str, device: str) -> dict[str, int]:
    """Bytes by role: as they were last counted on the device, or else by the optimizer."""
    for census in reversed(recording.censuses):
        if census.process == process and census.probe == device:
            return {tally.role: tally.bytes for tally in census.tallies}
    for census in reversed(recording.censuses):
        if census.process == process and census.probe == "torch.optimizer":
            there = [tally for tally in census.tallies if tally.kind == device]
            return {tally.role: tally.bytes for tally in there}
    return {}


def _driver(recording: Recording, process: str, device: str, uuid: str) -> Driver | None:
    """What the driver's samples say, each beside the row of the process nearest in time: what a
    context takes hardly changes, and what is reserved may by gigabytes a second."""
    seen = [one for one in recording.samples if one.process == "machine" and one.probe == uuid]
    if not uuid or not seen:
        return None
    pids = {start.pid for start in recording.starts.values()}
    start = recording.starts.get(process)
    own = f"process_{start.pid}_bytes" if start is not None else ""
    rows = _reserved_rows(recording, process, device)
    contexts = [
        sample.values[own] - reserved
        for sample in seen
        if own in sample.values
        and (reserved := _nearest(rows, sample.at.mono_ns)) is not None
        and sample.values[own] >= reserved
    ]
    last = next((one for one in reversed(seen) if own in one.values), seen[-1])
    others = sum(
        size
        for name, size in last.values.items()
        if name.startswith("process_") and int(name.split("_")[1]) not in pids
    )
    # In another namespace of process ids the driver knows the program by a number that we do not.
    context = int(median(contexts)) if contexts else None
    return Driver(last.values["total_bytes"], context, others)


def _reserved_rows(recording: Recording, process: str, device: str) -> list[tuple[int, int]]:
    rows = []
    for source in recording.sources(process):
        columns = recording.columns(process, source)
        pairs = zip(
            columns.get("mono_ns", ()), columns.get(f"{device}.reserved_bytes", ()), strict=False
        )
        rows += [(ns, size) for ns, size in pairs if ns is not None and size is not None]
    return sorted(rows)


def _nearest(rows: list[tuple[int, int]], mono_ns: int) -> int | None:
    """None where there is no row within a tenth of a second."""
    place = bisect_left(rows, (mono_ns, 0))
    around = rows[max(place - 1, 0) : place + 1]
    best = min(around, key=lambda row: abs(row[0] - mono_ns), default=None)
    return best[1] if best is not None and abs(best[0] - mono_ns) < _NEAR_NS else None
