"""Device memory as a framework's allocator counts it, behind one door, without a device."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fake_devices import MIB, FakeCuda, segment
from leakscope.model import BACKWARD
from leakscope.observe.allocations.device_lines import DeviceWindow
from leakscope.observe.counters.pulse import smooth
from leakscope.observe.devices.door import CudaDoor, Snapshot, open_door, rounded
from leakscope.observe.devices.rows import DeviceRows

ROWS = 4


def rows_of(fake: FakeCuda) -> DeviceRows:
    return DeviceRows(CudaDoor(fake.as_torch()), ROWS, smooth)


def test_a_torch_for_the_host_alone_has_no_door() -> None:
    assert open_door(SimpleNamespace(version=SimpleNamespace(cuda=None, hip=None))) is None
    assert open_door(SimpleNamespace()) is None


def test_rocm_is_behind_the_same_door() -> None:
    torch = FakeCuda(MIB).as_torch()
    torch.version = SimpleNamespace(cuda=None, hip="6.2")
    assert isinstance(open_door(torch), CudaDoor)


def test_nothing_is_asked_before_the_program_has_initialised_the_device() -> None:
    fake = FakeCuda(MIB)
    fake.is_initialised = False
    rows = rows_of(fake)
    rows.take(0, 1, 1.0)
    assert fake.calls == []
    assert rows.columns() == {}
    assert rows.counters() == {}
    assert CudaDoor(fake.as_torch()).why_shut() is not None


def test_devices_without_memory_have_no_columns() -> None:
    fake = FakeCuda(3 * MIB, 0)
    rows = rows_of(fake)
    rows.take(1, 1, 1.0)
    assert list(rows.columns()) == ["cuda:0.allocated_bytes", "cuda:0.reserved_bytes"]
    column = rows.columns()["cuda:0.allocated_bytes"]
    assert column == array("q", [-1, 3 * MIB, -1, -1])
    assert rows.allocated_bytes == 3 * MIB


def test_several_devices_are_added_up() -> None:
    rows = rows_of(FakeCuda(3 * MIB, MIB))
    rows.take(0, 1, 1.0)
    assert rows.used == (0, 1)
    assert rows.allocated_bytes == 4 * MIB
    assert rows.counters() == {
        "cuda:0.allocated_bytes": 3 * MIB,
        "cuda:1.allocated_bytes": MIB,
    }


@pytest.mark.parametrize(("active", "in_use"), [(5, 5), (786, 36)])
def test_pinned_memory_in_use_is_no_more_than_is_held(active: int, in_use: int) -> None:
    """torch 2.11 counts as active what has been freed (pytorch/pytorch#182404)."""
    torch = FakeCuda(MIB).as_torch()
    torch._C._cuda_hostMemoryStats = lambda: {
        "active_bytes": {"current": active * MIB},
        "allocated_bytes": {"current": 36 * MIB},
    }
    details = CudaDoor(torch).details(0)
    assert (details["pinned_bytes"], details["pinned_held_bytes"]) == (in_use * MIB, 36 * MIB)


def test_a_reading_waits_for_its_price_and_says_so() -> None:
    rows = rows_of(FakeCuda(MIB))
    rows.take(0, 1, 1.0)
    rows.take(1, 2, 1.0)
    assert rows.allocated_bytes == -1
    assert rows.columns()["cuda:0.allocated_bytes"][1] == -1


def test_a_forked_child_begins_without_its_parents_devices() -> None:
    fake = FakeCuda(MIB)
    rows = rows_of(fake)
    rows.take(0, 1, 1.0)
    fake.is_initialised = False  # as torch says it in a child
    rows.reset()
    rows.take(0, 1, 1.0)
    assert rows.columns() == {}


def test_a_snapshot_has_blocks_with_their_stacks_and_the_pools_of_graphs() -> None:
    fake = FakeCuda(MIB)
    fake.segments = [segment((64, 512, "a.py")), segment((128, MIB, ""), pool=(0, 3))]
    snapshot = CudaDoor(fake.as_torch()).snapshot()
    first, second = snapshot.blocks
    assert (first.address, first.bytes, first.stack) == (64, 512, (("a.py", 7, "serve"),))
    assert second.is_in_graph_pool
    assert snapshot.pool_bytes("cuda:0") == MIB
    assert snapshot.pool_bytes("cuda:1") == 0


def test_a_snapshot_does_not_make_torch_load_its_compiler() -> None:
    fake = FakeCuda(MIB)
    torch = fake.as_torch()
    seen: list[bool] = []

    def ask(_: Any) -> dict[str, Any]:
        # As the C++ side does it, which would import what is not there yet.
        seen.append(hasattr(torch, "_inductor") and hasattr(torch._inductor, "codecache"))
        return {"segments": []}

    torch._C._cuda_memorySnapshot = ask
    CudaDoor(torch).snapshot()
    assert seen == [False]
    assert not hasattr(torch, "_inductor")


def test_the_programs_own_history_is_left_on() -> None:
    fake = FakeCuda(MIB)
    fake.is_history_on = True
    door = CudaDoor(fake.as_torch())
    assert not door.record_stacks(True)
    window = DeviceWindow(door)
    window.open(10, 4)
    window.close(14)
    assert fake.is_history_on


def test_a_window_tells_what_outlived_the_steps_it_was_made_in() -> None:
    fake = FakeCuda(MIB)
    old, kept, by_backward, passing = (
        (64, 512, ""),
        (128, MIB, "a.py"),
        (256, 2 * MIB, ""),
        (512, MIB, "b.py"),
    )
    fake.segments = [segment(old)]
    window = DeviceWindow(CudaDoor(fake.as_torch()))
    window.open(10, 4)
    assert fake.is_history_on
    fake.segments = [segment(old, kept, by_backward, passing)]
    window.at_step(12)
    assert not fake.is_history_on, "recorded is the first half of the window"
    fake.segments = [segment(old, kept, by_backward, (1024, MIB, ""))]
    snapshot = window.close(14)
    assert snapshot is not None
    assert window.steps == 2
    tallies = {site.frames[0].file: site for site in window.survivors(snapshot.blocks)}
    assert set(tallies) == {"a.py", BACKWARD}
    assert tallies[BACKWARD].bytes == 2 * MIB


class Elsewhere:
    """Another kind of device: its allocator counts, and can tell no more."""

    kind = "mps"

    def is_open(self) -> bool:
        return True

    def why_shut(self) -> str | None:
        return None

    def count(self) -> int:
        return 1

    def read(self, index: int) -> tuple[int, int]:
        return MIB, 2 * MIB

    def describe(self, index: int) -> str:
        return "mps-0 another device"

    def details(self, index: int) -> dict[str, int]:
        return {
            "allocated_bytes": MIB,
            "reserved_bytes": 2 * MIB,
            "free_bytes": 6 * MIB,
            "total_bytes": 8 * MIB,
        }

    def snapshot(self) -> Snapshot | None:
        return None

    def record_stacks(self, is_on: bool) -> bool:
        return False

    def on_out_of_memory(self, call: Callable[..., None]) -> bool:
        return False


def test_another_kind_of_device_fits_the_same_rows_and_windows() -> None:
    rows = DeviceRows(Elsewhere(), ROWS, smooth)
    rows.take(0, 1, 1.0)
    assert rows.columns()["mps:0.reserved_bytes"][0] == 2 * MIB
    window = DeviceWindow(Elsewhere())
    window.open(1, 4)
    assert window.close(5) is None


def test_sizes_are_those_of_blocks() -> None:
    assert [rounded(size) for size in (1, 512, 513)] == [512, 512, 1024]
