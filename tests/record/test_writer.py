"""The writer inside a program: never raises, never tears more than one line."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakscope.model import Gap, Record
from leakscope.record.format import decode_record
from leakscope.record.writer import Writer, open_high


def _read(path: Path) -> list[Record]:
    return [decode_record(line) for line in path.read_bytes().splitlines() if line.strip()]


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """No file of this process may grow beyond so many bytes: the same as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    yield 200
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_short_write_costs_its_record_and_is_counted(tmp_path: Path, file_size_limit: int) -> None:
    """Breaks when a full disk raises, joins two lines, or goes unsaid once there is room again."""
    path = tmp_path / "1-1.jsonl"
    writer = Writer(str(path))
    assert writer.append(Gap("before", "x" * 80))
    assert not writer.append(Gap("torn", "x" * 200))
    assert not writer.append(Gap("lost", "x"))
    assert writer.lost_records == 2
    assert path.stat().st_size == file_size_limit
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))
    assert writer.append(Gap("after", "y"))
    lines = path.read_bytes().split(b"\n")
    assert b"torn" in lines[1]
    (before, after, loss) = (decode_record(line) for line in (lines[0], lines[2], lines[3]))
    assert before == Gap("before", "x" * 80)
    assert after == Gap("after", "y")
    assert isinstance(loss, Gap)
    assert loss.what == "2 records of 1-1.jsonl"
    assert "File too large" in loss.why


def test_folder_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    """Breaks when the first write of a process into a deleted recording raises."""
    writer = Writer(str(tmp_path / "gone" / "1-1.jsonl"))
    assert not writer.append(Gap("x", ""))
    assert writer.last_error == "No such file or directory"
    (tmp_path / "gone").mkdir()
    assert writer.append(Gap("y", ""))
    assert len(_read(tmp_path / "gone" / "1-1.jsonl")) == 2


def test_text_that_json_cannot_hold_costs_its_record_only(tmp_path: Path) -> None:
    """Breaks when a lone surrogate in a word raises into the program."""
    writer = Writer(str(tmp_path / "x.jsonl"))
    assert not writer.append(Gap("\udcff", ""))
    assert writer.append(Gap("fine", ""))
    assert writer.lost_records == 1


def test_line_begins_anew_after_a_half_one_of_somebody_else(tmp_path: Path) -> None:
    """Breaks when the agent continues the line in which the bootstrap was stopped."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"type":"process","proc')
    writer = Writer(str(path))
    writer.append(Gap("whole", ""))
    assert decode_record(path.read_bytes().split(b"\n")[1]) == Gap("whole", "")


def test_descriptor_that_became_the_programs_is_left_alone(tmp_path: Path) -> None:
    """Breaks when a line lands in a file that took our descriptor's number."""
    path, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs"
    writer = Writer(str(path))
    writer.append(Gap("one", ""))
    number = writer._descriptor
    assert number >= 200
    os.close(number)
    own = os.open(theirs, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(own, number)
    assert writer.append(Gap("two", ""))
    writer.close()
    os.fstat(number)  # still open: it is theirs
    os.close(number)
    os.close(own)
    assert theirs.read_bytes() == b""
    assert _read(path) == [Gap("one", ""), Gap("two", "")]


def test_close_then_append_opens_again(tmp_path: Path) -> None:
    """Breaks when an event after the end raises, or writes to descriptor -1."""
    path = tmp_path / "x.jsonl"
    writer = Writer(str(path))
    writer.close()
    writer.append(Gap("one", ""))
    writer.close()
    writer.close()
    writer.append(Gap("two", ""))
    writer.close()
    assert _read(path) == [Gap("one", ""), Gap("two", "")]


def test_descriptors_stay_out_of_the_programs_way(tmp_path: Path) -> None:
    """Breaks when a file of ours takes a low number, or is inherited by a child."""
    lowest = os.dup(0)
    os.close(lowest)
    writer = Writer(str(tmp_path / "x.jsonl"))
    writer.append(Gap("x", ""))
    statm = open_high("/proc/self/statm", os.O_RDONLY)
    again = os.dup(0)
    assert again == lowest
    for number in (writer._descriptor, statm):
        assert number >= 200
        assert not os.get_inheritable(number)
    os.close(again)
    os.close(statm)
    writer.close()


def test_low_limit_of_descriptors_is_enough(tmp_path: Path) -> None:
    """Breaks when `ulimit -n 100` keeps the recording from being written at all."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, before[1]))
    try:
        writer = Writer(str(tmp_path / "x.jsonl"))
        assert writer.append(Gap("x", ""))
        assert writer._descriptor < 150
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
