"""The memory of one process in layers that add up: by role, by what keeps it, and the rest.

Of live memory the optimizer's roles are known from censuses, what a finding keeps from looks. A
look is rare; between two looks, and before and after them, its layer is drawn on at the rate it was
seen to have, and the layer says where it was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec.structs import replace

from leakscope.attribute.suspect import Suspect
from leakscope.judge.axis import Floats, ticks_to_ns
from leakscope.judge.series import BLOCKS, HELD, IN_USE, RSS, RunSeries
from leakscope.model import USUAL_BLOCK_BYTES, Finding, Layer
from leakscope.summarise.thin import held_at

_ROLES = {"parameter": "parameters", "gradient": "gradients", "optimizer state": "optimizer state"}
_FIRST_STEP = 1
_PYTHON = "python"
_CLOCK = "tick"
_FEWEST_COUNTS = 2

Pairs = Mapping[str, tuple[Floats, Floats]]
"""Steps and values by metric."""


def layers_of(
    run: RunSeries,
    process: str,
    rows: Pairs,
    steps: Floats,
    suspects: Iterable[tuple[Suspect, Finding]],
) -> tuple[Layer, ...]:
    """From the bottom to the top; none if neither live nor resident memory was read."""
    metric = IN_USE if IN_USE in rows else RSS
    if metric not in rows:
        return ()
    read = rows[metric][0]
    inside = ((steps >= read[0]) & (steps <= read[-1])).tolist()
    layers = _stacked(run, process, rows, steps, suspects)
    return tuple(replace(layer, values=_where(inside, layer.values)) for layer in layers)


def _where(inside: list[bool], values: tuple[float | None, ...]) -> tuple[float | None, ...]:
    return tuple(
        value if is_inside else None for value, is_inside in zip(values, inside, strict=True)
    )


def _stacked(
    run: RunSeries,
    process: str,
    rows: Pairs,
    steps: Floats,
    suspects: Iterable[tuple[Suspect, Finding]],
) -> tuple[Layer, ...]:
    live, resident = _at(rows, IN_USE, steps), _at(rows, RSS, steps)
    if live is None:
        return () if resident is None else tuple(_with_constant([("resident", "rest", resident)]))
    python = _at(rows, BLOCKS, steps)
    python = np.zeros_like(steps) if python is None else python * USUAL_BLOCK_BYTES
    freed = _at(rows, HELD, steps)
    if resident is not None:
        # Untouched memory is live and not resident; the layers must not exceed what is there.
        live = np.minimum(live, resident)
        freed = None if freed is None else np.minimum(freed, resident - live)
        python = np.minimum(python, resident - live - (0.0 if freed is None else freed))
    roles = _roles(run, process, steps, live)
    live = live - sum((layer for _, layer in roles), np.zeros_like(steps))
    kept = []
    for suspect, finding in suspects:
        layer, span = _kept(run, process, suspect, steps)
        if layer is None:
            continue
        share = suspect.holding.parts.get(_PYTHON, 0.0) / max(suspect.holding.bytes_each, 1.0)
        small = np.minimum(layer * min(share, 1.0), python)
        large = np.minimum(layer - small, live)
        python, live = python - small, live - large
        kept.append(
            Layer(
                name=f"{finding.rule} {_named(suspect)}",
                role="kept",
                values=tuple((small + large).tolist()),
                seen_from=span[0],
                seen_to=span[1],
                fingerprint=finding.fingerprint,
            )
        )
    layers: list[tuple[str, str, Floats]] = []
    if resident is not None:
        counted = [live, python, *(layer for _, layer in roles)]
        counted += [np.array(layer.values, dtype=np.float64) for layer in kept]
        counted += [] if freed is None else [freed]
        rest = np.maximum(resident - np.sum(counted, axis=0), 0.0)
        layers.append(("interpreter, libraries and the rest", "rest", rest))
    layers += [("small Python objects", "python", python), ("other live memory", "live", live)]
    ordered = [
        *_with_constant(layers),
        *(Layer(_ROLES[role], _ROLES[role], tuple(layer.tolist())) for role, layer in roles),
        *kept,
    ]
    if freed is not None:
        ordered.append(Layer("freed, held by the allocator", "freed", tuple(freed.tolist())))
    return tuple(layer for layer in ordered if any(layer.values))


def _with_constant(layers: list[tuple[str, str, Floats]]) -> Iterable[Layer]:
    """What is there at every step is one layer of its own, below all that comes and goes."""
    lowest = [float(np.min(values)) for _, _, values in layers]
    yield Layer("there at every step", "constant", (sum(lowest),) * len(layers[0][2]))
    for (name, role, values), low in zip(layers, lowest, strict=True):
        yield Layer(name, role, tuple((values - low).tolist()))


def _at(rows: Pairs, metric: str, steps: Floats) -> Floats | None:
    """Counters have rows of their own; between two of them a straight line."""
    return np.interp(steps, *rows[metric]) if metric in rows else None


def _roles(run: RunSeries, process: str, steps: Floats, room: Floats) -> list[tuple[str, Floats]]:
    """Bytes by role as the optimizer had them; its state begins with its first step."""
    censuses = [
        census
        for census in run.recording.censuses
        if census.process == process and census.probe == "torch.optimizer"
    ]
    if not censuses:
        return []
    moments = np.array([census.at.mono_ns for census in censuses], dtype=np.float64)
    taken = run.axis_of(process).at(moments)
    found = []
    for role in _ROLES:
        sizes = np.array(
            [sum(t.bytes for t in census.tallies if t.role == role) for census in censuses],
            dtype=np.float64,
        )
        layer = held_at(taken, sizes, steps)
        if role == "optimizer state":
            layer = np.where(steps < _FIRST_STEP, 0.0, layer)
        layer = np.minimum(layer, room)
        room = room - layer
        found.append((role, layer))
    return found


def _kept(
    run: RunSeries, process: str, suspect: Suspect, steps: Floats
) -> tuple[Floats | None, tuple[float, float]]:
    """What a suspect keeps at each step, and between which steps that was seen."""
    counts = suspect.holding.counts
    if len(counts) < _FEWEST_COUNTS:
        return None, (0.0, 0.0)
    at = _on_axis(run, process, np.array([step for step, _ in counts], dtype=np.float64))
    kept = np.array([count for _, count in counts], dtype=np.float64) * suspect.holding.bytes_each
    if not (np.all(np.isfinite(at)) and at[-1] > at[0]):
        return None, (0.0, 0.0)
    slope = (kept[-1] - kept[0]) / (at[-1] - at[0])
    layer = np.interp(steps, at, kept)
    layer = np.where(steps < at[0], kept[0] + slope * (steps - at[0]), layer)
    layer = np.where(steps > at[-1], kept[-1] + slope * (steps - at[-1]), layer)
    return np.maximum(layer, 0.0), (float(at[0]), float(at[-1]))


def _on_axis(run: RunSeries, process: str, counted: Floats) -> Floats:
    """Steps as the look counted them, on the axis the process is drawn on."""
    source, axis = run.recording.snapshot_source(process), run.axis_of(process)
    if axis.process == process and axis.source == source:
        return counted
    if source == _CLOCK:
        return axis.at(ticks_to_ns(run.recording, process, counted))
    columns = run.recording.columns(process, source)
    pairs = [
        (step, ns)
        for step, ns in zip(columns.get("step", ()), columns.get("mono_ns", ()), strict=False)
        if step is not None and ns is not None
    ]
    if not pairs:
        return np.full_like(counted, np.nan)
    own = np.array(pairs, dtype=np.float64)
    return axis.at(np.interp(counted, own[:, 0], own[:, 1]))


def _named(suspect: Suspect) -> str:
    return f"`{suspect.named.name}`" if suspect.named is not None else "what it keeps"
