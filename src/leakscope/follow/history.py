"""Rows in, a curve out: only blocks that are new are read, and a long run takes no more room."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.model import Pulses
from leakscope.record.format import undo_delta
from leakscope.record.reader import Recording

MOST_POINTS = 2048
"""Five times the dots of a wide terminal; beyond it two neighbours become one."""

_CLOCKS = ("time", "tick")


class Point(NamedTuple):
    """The highest values of one row, or of several neighbours."""

    at: float
    """A step, or seconds since the start where nothing steps."""
    resident: int | None
    in_use: int | None


class Track:
    """The rows of one source of one process."""

    def __init__(self, process: str, source: str, started_ns: int) -> None:
        self.process = process
        self.source = source
        self.points: list[Point] = []
        self.last: dict[str, int] = {}
        """The latest value of each counter."""
        self.rows = 0
        self._started_ns = started_ns
        self._blocks = 0
        self._rows_in_a_point = 1

    @property
    def is_by_steps(self) -> bool:
        return self.source not in _CLOCKS

    def take(self, blocks: list[Pulses]) -> None:
        """The blocks of this source, of which those already taken are passed over."""
        for block in blocks[self._blocks :]:
            self._take(block)
        self._blocks = len(blocks)

    def _take(self, block: Pulses) -> None:
        columns = {name: undo_delta(column) for name, column in block.columns.items()}
        for name, column in columns.items():
            value = next((value for value in reversed(column) if value is not None), None)
            if value is not None:
                self.last[name] = value
        moments = columns.get("step" if self.is_by_steps else "mono_ns", [])
        for row, moment in enumerate(moments):
            if moment is not None:
                at = moment if self.is_by_steps else (moment - self._started_ns) / 1e9
                self._add(
                    Point(at, _cell(columns, "rss_bytes", row), _cell(columns, "in_use_bytes", row))
                )

    def _add(self, point: Point) -> None:
        is_new = self.rows % self._rows_in_a_point == 0
        self.rows += 1
        if is_new or not self.points:
            self.points.append(point)
        else:
            self.points[-1] = _highest(self.points[-1], point)
        if len(self.points) > MOST_POINTS:
            pairs = zip(self.points[::2], [*self.points[1::2], self.points[-1]], strict=False)
            self.points = [_highest(one, other) for one, other in pairs]
            self._rows_in_a_point *= 2


class History:
    """All rows of a run so far, each read once."""

    def __init__(self) -> None:
        self.tracks: dict[tuple[str, str], Track] = {}

    def follow(self, recording: Recording) -> None:
        for process in recording.pulsed():
            for source in recording.sources(process):
                key = (process, source)
                if key not in self.tracks:
                    self.tracks[key] = Track(process, source, recording.run.started_mono_ns)
                self.tracks[key].take(recording.blocks(process, source))

    def main(self, recording: Recording) -> Track | None:
        """The track to draw: of the program itself, of rank 0, of whoever has most rows; by steps
        where there are any."""

        def importance(track: Track) -> tuple[bool, bool, bool, bool, int]:
            start = recording.starts.get(track.process)
            kind = start.kind if start is not None else ""
            rank = start.environment.get("RANK") if start is not None else None
            has_in_use = "in_use_bytes" in track.last
            return track.is_by_steps, kind == "main", rank == "0", has_in_use, track.rows

        drawn = [one for one in self.tracks.values() if one.process != "machine" and one.points]
        return max(drawn, key=importance, default=None)

    def last(self, process: str, counter: str) -> int | None:
        """The value read last, from inside or from outside."""
        tracks = [
            track
            for (name, _), track in self.tracks.items()
            if name == process and counter in track.last
        ]
        latest = max(tracks, key=lambda track: track.last.get("mono_ns", 0), default=None)
        return latest.last[counter] if latest is not None else None


def _cell(columns: dict[str, list[int | None]], name: str, row: int) -> int | None:
    column = columns.get(name, ())
    return column[row] if row < len(column) else None


def _highest(one: Point, other: Point) -> Point:
    return Point(one.at, _larger(one.resident, other.resident), _larger(one.in_use, other.in_use))


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
