"""Rows of counters: preallocated, written in blocks, and right in a forked child."""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

import pytest

from leakscope.model import Pulses
from leakscope.observe.counters.pulse import COLUMNS, Pulse
from leakscope.record.format import decode_record, undo_delta
from leakscope.record.writer import Writer


def _blocks(path: Path) -> list[Pulses]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    records = [decode_record(line) for line in lines if line]
    return [record for record in records if isinstance(record, Pulses)]


def _column(path: Path, name: str) -> list[int | None]:
    return [value for block in _blocks(path) for value in undo_delta(block.columns[name])]


def _pulse(path: Path, heap: tuple[int, int] | None = (100, 7)) -> Pulse:
    pulse = Pulse("1-1", Writer(str(path)), (lambda: heap) if heap is not None else None)
    pulse.source = "api"
    return pulse


def test_rows_hold_what_was_read(tmp_path: Path) -> None:
    """Breaks when a column is shifted, an unread counter becomes a number, or a row is lost."""
    path = tmp_path / "x.jsonl"
    pulse = _pulse(path)
    began = time.monotonic_ns()
    for step in range(1, 301):
        pulse.take(time.monotonic_ns(), step, step // 100)
    pulse.flush()
    assert _column(path, "step") == list(range(1, 301))
    assert _column(path, "collections_count") == [step // 100 for step in range(1, 301)]
    moments = [value for value in _column(path, "mono_ns") if value is not None]
    assert moments == sorted(moments)
    assert began <= moments[0] <= moments[-1] <= time.monotonic_ns()
    resident = [value for value in _column(path, "rss_bytes") if value is not None]
    assert len(resident) == 300
    assert min(resident) > 1 << 20
    in_use, held = _column(path, "in_use_bytes"), _column(path, "held_bytes")
    assert in_use[0] == 100
    assert set(in_use) <= {100, None}
    assert [value is None for value in in_use] == [value is None for value in held]
    assert max(len(block.columns["step"]) for block in _blocks(path)) == 128
    assert [set(block.columns) for block in _blocks(path)] == [set(COLUMNS)] * len(_blocks(path))


def test_block_is_written_before_it_is_full_if_it_gets_old(tmp_path: Path) -> None:
    """Breaks when a slow program's rows wait in memory for the hundred that follow."""
    path = tmp_path / "x.jsonl"
    pulse = _pulse(path)
    pulse.take(1_000_000_000, 1, 0)
    pulse.take(1_100_000_000, 2, 0)
    assert _blocks(path) == []
    pulse.take(1_200_000_000, 3, 0)
    assert _column(path, "step") == [1, 2, 3]


def test_allocator_without_counters_has_no_values(tmp_path: Path) -> None:
    """Breaks when what cannot be read is written as zero."""
    path = tmp_path / "x.jsonl"
    pulse = _pulse(path, heap=None)
    pulse.take(1, 1, 0)
    pulse.flush()
    assert _column(path, "in_use_bytes") == [None]
    assert set(pulse.counters()) == {"rss_bytes", "blocks_count"}


def test_nothing_grows_with_the_steps(tmp_path: Path) -> None:
    """Breaks when a row leaves an object behind: the observer would be the leak."""
    pulse = _pulse(tmp_path / "x.jsonl")
    for step in range(1, 3000):
        pulse.take(step, step, 0)
    gc.collect()
    before = sys.getallocatedblocks()
    for step in range(3000, 30_000):
        pulse.take(step, step, 0)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pytest-xdist has threads of its own
def test_forked_child_reads_itself_and_writes_its_own_file(tmp_path: Path) -> None:
    """Breaks when a child reports its parent's memory, or repeats its parent's rows."""
    parent_path, child_path = tmp_path / "parent.jsonl", tmp_path / "child.jsonl"
    pulse = _pulse(parent_path)
    pulse.take(1, 1, 0)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            pulse.after_fork("2-2", Writer(str(child_path)))
            ballast = bytearray(b"x" * (64 << 20))
            pulse.take(2, 1, 0)
            pulse.flush()
            status = 0 if ballast else 1
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    pulse.flush()
    (child,) = _blocks(child_path)
    assert child.process == "2-2"
    (mine,), (its,) = _column(parent_path, "rss_bytes"), _column(child_path, "rss_bytes")
    assert mine is not None
    assert its is not None
    assert its > 64 << 20
    assert _column(parent_path, "step") == [1]


def test_descriptor_taken_away_is_opened_again(tmp_path: Path) -> None:
    """Breaks when a program that closes every descriptor gets an exception, or a wrong number."""
    path = tmp_path / "x.jsonl"
    pulse = _pulse(path)
    pulse.take(1, 1, 0)
    number = pulse._statm
    theirs = tmp_path / "theirs"
    theirs.write_text("not two numbers")
    os.close(number)
    pulse.take(2, 2, 0)
    own = os.open(theirs, os.O_RDONLY)
    os.dup2(own, pulse._statm)
    pulse.take(3, 3, 0)
    pulse.flush()
    os.close(own)
    values = _column(path, "rss_bytes")
    assert all(value is not None and value > 1 << 20 for value in values), values


@pytest.mark.parametrize("steps", [5])
def test_time_spent_is_told(steps: int, tmp_path: Path) -> None:
    """Breaks when the cost in the report is not the sum of what the rows cost."""
    path = tmp_path / "x.jsonl"
    pulse = _pulse(path)
    for step in range(steps):
        pulse.take(time.monotonic_ns(), step, 0)
    pulse.flush()
    assert _blocks(path)[-1].spent_ns == pulse.spent_ns > 0
