"""What a holding takes of one kind of memory, and what only the device's allocator can tell.

A tensor on a device is held by the same Python objects as any other; only its bytes lie elsewhere.
Where no holder accounts for them, the lines do whose blocks outlived their window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leakscope.attribute.fingerprint import fingerprint
from leakscope.attribute.places import site_of
from leakscope.judge.series import PINNED
from leakscope.model import DEVICE_TOOL, Holding, Link, Site
from leakscope.record.reader import Recording

_FEWEST_A_STEP = 0.5
_TENSORS = ("tensors", "saved", "arrays")
"""Pinned memory among them: to Python it is memory of somebody else's, as an array's is."""


def bytes_on(holding: Holding, device: str | None) -> float:
    """Of what one more item keeps: the part in the host's memory (None), or on a device."""
    elsewhere = sum(holding.on_device.values())
    if device is None:
        return max(holding.bytes_each - elsewhere, 0.0)
    if device == PINNED:
        tensors = sum(holding.parts.get(part, 0.0) for part in _TENSORS)
        return max(tensors - elsewhere, 0.0)
    return holding.on_device.get(device, 0.0)


def lines_without_holder(
    recording: Recording, process: str, device: str, sources: Mapping[str, str]
) -> Iterator[tuple[Holding, float, Site | None]]:
    """Lines of the last window whose blocks are in use still: as holdings that nobody holds, with
    how many a step."""
    windows = [
        one for one in recording.windows if one.process == process and one.tool == DEVICE_TOOL
    ]
    if not windows or windows[-1].steps < 1:
        return
    window = windows[-1]
    step = window.at.step or 0
    for tally in window.sites:
        a_step = tally.count / window.steps
        if a_step < _FEWEST_A_STEP:
            continue
        site = site_of((tally,), sources)
        link = Link("no Python object holds it", "device memory", "native", _name(site))
        holding = Holding(
            at=window.at,
            process=process,
            kind="device",
            path=(link,),
            grows_at=0,
            item="block",
            counts=((step - window.steps, 0), (step, tally.count)),
            bytes_each=tally.bytes / tally.count,
            on_device={device: tally.bytes / tally.count},
            sites=(tally,),
        )
        yield holding, a_step, site


def name_of_line(holding: Holding) -> str:
    return fingerprint(holding.path, 0, "device")


def _name(site: Site | None) -> str:
    return (site.function or "") if site is not None else ""
