"""What is written down when memory is nearly full, or an allocation fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_devices import MIB, FakeCuda, segment
from leakscope.agent.near_limit import NearLimit, TakenNow
from leakscope.model import BlackBox, Gap, Moment, Sample
from leakscope.observe.counters.pulse import smooth
from leakscope.observe.devices.door import CudaDoor
from leakscope.observe.devices.rows import DeviceRows
from leakscope.observe.machine.host_use import HostUse, Use
from leakscope.observe.machine.limits import Cgroup

SECOND = 1_000_000_000


class Notebook:
    """Takes records in instead of writing them."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def append(self, record: Any) -> None:
        self.records.append(record)

    def of(self, kind: type) -> list[Any]:
        return [one for one in self.records if type(one) is kind]


class Far:
    def read(self) -> Use | None:
        return Use(1, 100)


def made(fake: FakeCuda, host: Any = None) -> tuple[NearLimit, Notebook]:
    notebook = Notebook()
    limits = NearLimit(
        "1-7",
        notebook,  # type: ignore[arg-type]
        lambda: Moment(0, 0, 12),
        lambda why: TakenNow("heap/1-7-1.heap"),
    )
    limits._host = host or Far()  # type: ignore[assignment]
    door = CudaDoor(fake.as_torch())
    rows = DeviceRows(door, 4, smooth)
    rows.take(0, 1, 1.0)
    limits.watch_devices(door, rows)
    return limits, notebook


def test_a_device_with_room_is_sampled_and_no_more() -> None:
    limits, notebook = made(FakeCuda(100 * MIB))
    limits.on_row(SECOND)
    assert notebook.of(BlackBox) == []
    (sample,) = notebook.of(Sample)
    assert sample.probe == "cuda:0"
    assert sample.values["allocated_bytes"] == 100 * MIB


def test_a_device_that_fills_up_is_looked_at_once() -> None:
    fake = FakeCuda(480 * MIB)
    fake.total = 1000 * MIB
    limits, notebook = made(fake)
    fake.allocated[0], fake.reserved[0] = 960 * MIB, 980 * MIB
    fake.segments = [segment((64, 960 * MIB, "a.py"))]
    limits.on_row(SECOND)
    limits.on_row(2 * SECOND)
    (box,) = notebook.of(BlackBox)
    assert (box.where, box.why) == ("cuda:0", "nearly full")
    assert box.values["limit_bytes"] == 1000 * MIB
    (occupant,) = box.occupants
    assert (occupant.role, occupant.bytes) == ("none", 960 * MIB)
    assert occupant.frames[0].file == "a.py"


def test_while_a_window_is_open_devices_are_left_alone() -> None:
    limits, notebook = made(FakeCuda(100 * MIB))
    limits.on_row(SECOND, True)
    assert notebook.records == []


def test_an_allocation_that_fails_leaves_a_box_and_the_exception_alone() -> None:
    fake = FakeCuda(100 * MIB)
    limits, notebook = made(fake)
    limits.on_row(SECOND)
    fake.segments = [segment((64, 32 * MIB, ""), (128, MIB, "a.py"))]
    assert fake.on_oom is not None
    assert fake.on_oom(0, 400 * MIB, 1000 * MIB, 0) is None
    (box,) = notebook.of(BlackBox)
    assert box.why == "out of memory"
    assert box.values["wanted_bytes"] == 400 * MIB
    assert {one.role for one in box.occupants} == {"workspace"}, "known by their sizes"


def test_a_look_that_fails_is_a_gap_and_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda(100 * MIB)
    limits, notebook = made(fake)
    limits.on_row(SECOND)

    def fail(*_: Any) -> None:
        raise ValueError("odd heap")

    monkeypatch.setattr(limits, "_take_snapshot", fail)
    assert fake.on_oom is not None
    fake.on_oom(0, 1, 1, 0)
    (gap,) = notebook.of(Gap)
    assert (gap.what, gap.why) == ("black box", "ValueError: odd heap")


def test_after_the_end_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda(100 * MIB)
    limits, notebook = made(fake)
    limits.on_row(SECOND)
    limits.close()
    assert fake.on_oom is not None
    fake.on_oom(0, 1, 1, 0)
    assert notebook.of(BlackBox) == []


def test_a_device_that_was_never_used_is_a_gap_at_the_end() -> None:
    fake = FakeCuda(0)
    limits, notebook = made(fake)
    fake.is_initialised = False
    limits.close()
    (gap,) = notebook.of(Gap)
    assert gap.what == "GPU memory"
    assert "has not initialised it" in gap.why


class Filling:
    def __init__(self, *used: int) -> None:
        self.used = list(used)

    def read(self) -> Use | None:
        return Use(self.used.pop(0), 100)


def test_the_host_is_looked_at_when_its_limit_nears_and_again_after_it_fell() -> None:
    limits, notebook = made(FakeCuda(0), Filling(90, 96, 97, 50, 96))
    for row in range(1, 7):
        limits.on_row(row * SECOND)
    boxes = notebook.of(BlackBox)
    assert [box.where for box in boxes] == ["host", "host"]
    assert boxes[0].values == {"used_bytes": 96, "limit_bytes": 100}
    assert boxes[0].snapshot == "heap/1-7-1.heap"


def test_page_cache_is_not_use(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000")
    (tmp_path / "memory.current").write_text("980")
    (tmp_path / "memory.stat").write_text("file 500\nshmem 100\n")
    use = HostUse(Cgroup(2, str(tmp_path)))
    assert use.read() == Use(980 - 400, 1000)
