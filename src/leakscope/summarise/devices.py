"""Four levels of each device's memory that add up: driver, reserved, in use, tensors by role."""

from __future__ import annotations

from typing import NamedTuple

from leakscope import text
from leakscope.judge.series import ALLOCATED, RESERVED, RunSeries
from leakscope.model import DeviceLevels, Sample
from leakscope.record.reader import Recording

CONTEXT = "context and libraries, outside of the allocator"
UNUSED = "reserved by the allocator, free for reuse"
UNMATCHED = "in use without a tensor: workspaces of libraries, C++ only"
POOLS = "pools of CUDA graphs"
REST = "tensors the program holds"
_ROLES = {
    "parameter": "parameters",
    "gradient": "gradients",
    "buffer": "buffers",
    "optimizer state": "optimizer state",
    "saved for backward": "saved for backward",
    "graph pool": POOLS,
    "none": UNMATCHED,
}


class Driver(NamedTuple):
    """One device as the driver saw it."""

    total_bytes: int
    used_bytes: int
    of_process: int | None
    of_run: int
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
    driver = _driver(recording, uuid, start.pid if start else -1, last.at.mono_ns)
    allocated, reserved = last.values["allocated_bytes"], last.values["reserved_bytes"]
    parts: dict[str, int] = {}
    of_process = driver.of_process if driver is not None else None
    if of_process is not None and of_process > reserved:
        parts[CONTEXT] = of_process - reserved
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
        says=_says(driver, reserved, allocated, last),
    )


def _says(driver: Driver | None, reserved: int, allocated: int, last: Sample) -> str:
    whole = driver.of_process if driver is not None and driver.of_process else reserved
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
    for census in reversed(recording.censuses):
        if census.process == process and census.probe == device:
            return {tally.role: tally.bytes for tally in census.tallies}
    return {}


def _driver(recording: Recording, uuid: str, pid: int, mono_ns: int) -> Driver | None:
    """The driver's sample nearest in time."""
    seen = [one for one in recording.samples if one.process == "machine" and one.probe == uuid]
    if not uuid or not seen:
        return None
    nearest = min(seen, key=lambda one: abs(one.at.mono_ns - mono_ns))
    by_process = {
        int(name.removeprefix("process_").removesuffix("_bytes")): size
        for name, size in nearest.values.items()
        if name.startswith("process_")
    }
    pids = {start.pid for start in recording.starts.values()}
    of_run = sum(size for one, size in by_process.items() if one in pids)
    used = nearest.values["used_bytes"]
    # In another namespace of process ids the driver knows the program by a number that we do not.
    of_process = by_process.get(pid)
    others = max(used - of_run, 0) if of_run else sum(by_process.values())
    return Driver(nearest.values["total_bytes"], used, of_process, of_run, others)
