"""What was in memory when it ran out, or was about to: places for stacks, words for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from leakscope import text
from leakscope.attribute.places import relative, site_of
from leakscope.attribute.suspects import sources_for
from leakscope.heap.contents import contents_of
from leakscope.heap.groups import read_groups
from leakscope.model import BlackBox, FullMoment, Occupant, Occupied, SiteTally
from leakscope.record.reader import Recording
from leakscope.summarise.contents import words_of

_TOLD = 12
_NAMES = {
    "none": "no tensor",
    "graph pool": "pool of CUDA graphs",
    "workspace": "workspaces",
    "tensor": "tensors",
    "container": "objects",
    "parameter": "parameters",
    "gradient": "gradients",
    "buffer": "buffers",
}


def full_moments(recording: Recording, names: Mapping[str, str]) -> tuple[FullMoment, ...]:
    """The worst first: a failure before a warning, the later before the earlier."""
    boxes = sorted(
        recording.black_boxes, key=lambda box: (box.why != "out of memory", -box.at.mono_ns)
    )
    return tuple(_moment(box, recording, names) for box in boxes)


def _contents(box: BlackBox, recording: Recording) -> tuple[tuple[Occupant, ...], int]:
    """What filled memory, the largest first; and how much of it the snapshot accounts for."""
    file = Path(recording.directory, box.snapshot)
    groups = read_groups(file) if box.snapshot and file.exists() else None
    if groups is None:
        return box.occupants, box.matched_bytes
    device = None if box.where == "host" else box.where
    held = [
        Occupant(one.role, one.item, words_of(one.path), one.number, one.size_bytes)
        for one in contents_of(groups, device)
    ]
    matched = sum(one.bytes for one in held)
    every = sorted([*held, *box.occupants], key=lambda one: -one.bytes)
    return tuple(every), matched


def _moment(box: BlackBox, recording: Recording, names: Mapping[str, str]) -> FullMoment:
    occupants, matched = _contents(box, recording)
    sources = sources_for(recording, box.process)
    directory = recording.run.directory
    return FullMoment(
        where=box.where,
        why=box.why,
        process=names.get(box.process, box.process),
        at_step=box.at.step,
        says=_says(box),
        contents=tuple(_occupied(one, sources, directory) for one in occupants[:_TOLD]),
        matched_share=_matched(box, occupants, matched),
        spent_seconds=box.spent_ns / 1e9,
    )


def _occupied(one: Occupant, sources: Mapping[str, str], directory: str) -> Occupied:
    site = site_of((SiteTally(one.frames, one.count),), sources) if one.frames else None
    return Occupied(
        role=_NAMES.get(one.role, one.role),
        what=one.what,
        holder=one.holder,
        count=one.count,
        bytes=one.bytes,
        site=relative(site, directory) if site is not None else None,
        is_compiled=any("/torchinductor_" in frame.file for frame in one.frames),
    )


def _says(box: BlackBox) -> str:
    values = box.values
    where = "host memory" if box.where == "host" else box.where
    step = f" at step {text.count(box.at.step)}" if box.at.step else ""
    used = values.get("allocated_bytes", values.get("used_bytes", 0))
    says = f"{where} {'ran out' if box.why == 'out of memory' else 'was nearly full'}{step}: "
    if "wanted_bytes" in values:
        says += f"{text.size(values['wanted_bytes'])} were asked for, "
    says += f"{text.size(used)} of {text.size(values.get('limit_bytes', 0))} were in use"
    unused = values.get("reserved_bytes", used) - used
    if "wanted_bytes" in values and unused > values["wanted_bytes"]:
        says += (
            f"; {text.size(unused)} more were reserved and free, in pieces that were too small "
            "(fragmentation)"
        )
    return says


def _matched(box: BlackBox, occupants: Sequence[Occupant], matched: int) -> float | None:
    total = sum(one.bytes for one in occupants)
    return matched / total if total and box.where != "host" else None
