"""A second holder of the same items is named."""

from __future__ import annotations

from pathlib import Path

from heap_builder import HERE, Heap

from leakscope.heap.groups import group_objects
from leakscope.heap.growth import find_growth
from leakscope.heap.other_holders import other_holders
from leakscope.heap.snapshot import read_snapshot
from leakscope.record.snapshot_file import EdgeRole


def test_two_holders(tmp_path: Path) -> None:
    """Breaks when a table that keeps the items too is not named, or the items' own parts are."""
    snapshots = []
    for number, step in enumerate((10, 20, 30), 1):
        heap = Heap()
        items = []
        for _ in range(step):
            item = heap.instance("Item", 500)
            owner = heap.instance("Part", 50, owner=item)
            heap.refer(item, owner, EdgeRole.ATTRIBUTE, "part")
            items.append(item)
        both = {"buffer": heap.items("list", *items), "by_id": heap.items("dict", *items)}
        heap.module("__main__", HERE, best=heap.items("list", items[0]), **both)
        snapshot = read_snapshot(heap.write(tmp_path / f"{number}.heap", step=step))
        assert snapshot is not None
        snapshots.append(snapshot)
    growth = find_growth([group_objects(one) for one in snapshots], (10, 20, 30))
    [path] = other_holders(snapshots[-1], growth.growing[0])
    assert [link.via for link in path] == ["module train", ".by_id"]
