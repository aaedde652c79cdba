"""The recording on disk: what is written is what is read, however it was cut."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leakscope.errors import LeakscopeError
from leakscope.model import (
    FORMAT_VERSION,
    Census,
    Gap,
    Machine,
    Mark,
    Moment,
    ProcessEnd,
    ProcessStart,
    Pulses,
    Record,
    Run,
    Sample,
    Tally,
)
from leakscope.record.format import (
    RUN_FILE,
    decode_record,
    delta_code,
    encode,
    file_of,
    name_process,
    parse_start_ticks,
    storable,
    undo_delta,
    write_run,
)
from leakscope.record.reader import Reader, Recording, load, read_run
from leakscope.record.writer import Writer

_words = st.text(max_size=12)
_numbers = st.integers(-(2**62), 2**62)
_values = st.dictionaries(_words, _numbers, max_size=4)
_moments = st.builds(Moment, _numbers, _numbers, st.none() | _numbers, st.none() | _words)
_columns = st.dictionaries(_words, st.lists(st.none() | _numbers, max_size=5), max_size=4)
_records: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        ProcessStart,
        process=_words,
        pid=_numbers,
        parent_pid=_numbers,
        at=_moments,
        kind=_words,
        name=st.none() | _words,
        command=st.lists(_words, max_size=3).map(tuple),
        python=st.none() | _words,
        environment=st.dictionaries(_words, _words, max_size=2),
    ),
    st.builds(Pulses, process=_words, source=_words, columns=_columns, spent_ns=_numbers),
    st.builds(Sample, _moments, _words, _words, _values, st.dictionaries(_words, _words)),
    st.builds(Mark, _moments, _words, _words, _numbers, _values, st.none() | _words),
    st.builds(
        Census,
        _moments,
        _words,
        _words,
        st.lists(st.builds(Tally, _words, _words, _numbers, _numbers), max_size=3).map(tuple),
    ),
    st.builds(Gap, _words, _words, st.none() | _words),
    st.builds(ProcessEnd, _moments, _words, st.none() | _numbers, st.none() | _numbers, _values),
)
_RUN = Run("x", FORMAT_VERSION, "0", 1, 2, ("python", "x.py"), "/", Machine("h", "Linux", "3", 2))
_unhurried = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _fresh(directory: Path) -> Path:
    """An empty recording; hypothesis runs many examples in one test's folder."""
    directory.mkdir(exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    write_run(str(directory), _RUN)
    return directory


def _all(recording: Recording) -> list[Record]:
    blocks = [block for blocks in recording._blocks.values() for block in blocks]
    return [
        *recording.starts.values(),
        *blocks,
        *recording.samples,
        *recording.marks,
        *recording.censuses,
        *recording.gaps,
        *recording.ends.values(),
    ]


@given(record=_records)
@settings(deadline=None)
def test_record_is_one_line_and_comes_back_equal(record: Record) -> None:
    """Breaks when a word with a newline, a quote or an emoji does not survive the file."""
    line = encode(record)
    assert b"\n" not in line
    assert decode_record(line) == record


@given(values=st.lists(st.none() | st.integers(-(2**70), 2**70)))
def test_deltas_undo(values: list[int | None]) -> None:
    """Breaks when a value after a gap is taken against the wrong one before it."""
    assert undo_delta(delta_code(values)) == values


@given(records=st.lists(_records, max_size=6))
@_unhurried
def test_written_records_are_read_in_order(tmp_path: Path, records: list[Record]) -> None:
    """Breaks when the writer loses, joins or reorders records, or the reader drops a kind."""
    directory = _fresh(tmp_path / "rec")
    writer = Writer(str(directory / file_of("1-1")))
    for record in records:
        assert writer.append(record)
    writer.close()
    recording = load(str(directory))
    assert (recording.torn_lines, recording.unknown_records) == (0, 0)
    expected = Recording(_RUN, "")
    for record in records:
        expected.add(record)
    assert _all(recording) == _all(expected)
    assert recording.followed == ({"1-1"} if records else set())


def test_cut_at_every_byte_leaves_a_prefix_that_says_so(tmp_path: Path) -> None:
    """Breaks when a file that ends anywhere loses a whole record before the cut, or hides it."""
    directory = _fresh(tmp_path / "rec")
    records: list[Record] = [
        Gap("first", 'why "quoted" ü\n', None),
        Mark(Moment(1, 2, 3), "1-1", "save", 0, {"rss_bytes": 5}),
        Pulses("1-1", "api", {"step": [1, 1], "rss_bytes": [4096, None]}),
        Gap("last", "", "1-1"),
    ]
    content = b"".join(encode(record) + b"\n" for record in records)
    file = directory / file_of("1-1")
    for cut in range(len(content) + 1):
        file.write_bytes(content[:cut])
        recording = load(str(directory))
        whole = content[:cut].count(b"\n")
        is_torn = not (content[:cut] == b"" or content[:cut].endswith(b"\n"))
        assert sorted(map(repr, _all(recording))) == sorted(map(repr, records[:whole])), cut
        assert recording.torn_lines == int(is_torn), cut
        assert recording.unknown_records == 0, cut


@given(cut=st.integers(1, 40), junk=st.binary(max_size=20))
@_unhurried
def test_torn_line_in_the_middle_costs_itself_only(tmp_path: Path, cut: int, junk: bytes) -> None:
    """Breaks when one bad line takes others along, or raises."""
    directory = _fresh(tmp_path / "rec")
    good = encode(Gap("good", "whole")) + b"\n"
    torn = encode(Gap("torn", "x" * 40))[:cut] + junk.replace(b"\n", b"")
    (directory / file_of("1-1")).write_bytes(good + torn + b"\n" + good)
    recording = load(str(directory))
    assert [gap.what for gap in recording.gaps].count("good") == 2
    assert len(recording.gaps) + recording.torn_lines + recording.unknown_records == 3


def test_records_of_later_versions_are_counted_not_guessed(tmp_path: Path) -> None:
    """Breaks when an unknown type or field makes the rest unreadable, or passes unsaid."""
    directory = _fresh(tmp_path / "rec")
    lines = [
        {"type": "hologram", "what": "x"},
        {"type": "gap", "what": "x", "why": "y", "colour": "blue"},
        {"type": "gap", "what": 7, "why": "y"},
        [],
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / file_of("1-1")).write_text(content)
    recording = load(str(directory))
    assert [gap.what for gap in recording.gaps] == ["x"]
    assert (recording.unknown_records, recording.torn_lines) == (3, 0)


def test_reader_follows_a_growing_run(tmp_path: Path) -> None:
    """Breaks when a live view reads a line twice, half a line, or misses a new process."""
    directory = _fresh(tmp_path / "rec")
    reader = Reader(str(directory))
    assert _all(reader.poll()) == []
    first, second = directory / file_of("1-1"), directory / file_of("2-1")
    line = encode(Gap("one", "")) + b"\n"
    with first.open("ab", buffering=0) as file:
        file.write(line + line[:10])
        assert len(reader.poll().gaps) == 1
        assert len(reader.poll().gaps) == 1
        file.write(line[10:])
        assert len(reader.poll().gaps) == 2
    second.write_bytes(line * 3)
    recording = reader.finish()
    assert len(recording.gaps) == 5
    assert recording.torn_lines == 0
    assert recording.followed == {"1-1", "2-1"}
    assert recording.size_bytes == 5 * len(line)


def test_rows_of_several_blocks_join(tmp_path: Path) -> None:
    """Breaks when a counter that appears later, or is missing in one block, shifts its rows."""
    recording = Recording(_RUN, "")
    recording.add(Pulses("1-1", "api", {"step": [1, 1, 1], "rss_bytes": [10, None, 5]}, 3))
    recording.add(Pulses("1-1", "api", {"step": [4], "in_use_bytes": [7]}, 9))
    recording.add(Pulses("1-1", "api", {"step": [5], "rss_bytes": [8]}, 4))
    assert recording.columns("1-1", "api") == {
        "step": [1, 2, 3, 4, 5],
        "rss_bytes": [10, None, 15, None, 8],
        "in_use_bytes": [None, None, None, 7, None],
    }
    assert recording.spent_ns == {"1-1": 9}
    assert recording.columns("1-1", "optimizer") == {}


_OUTSIDE = ProcessStart("1-1", 1, 0, Moment(1, 1), "main", None, ("python", "x"), None, {"A": "1"})
_HELLO = ProcessStart("1-1", 1, 0, Moment(2, 2), python="3.11.7")
_WORKER = ProcessStart("1-1", 1, 0, Moment(3, 3), "worker", "worker 0", python="3.11.7")
_AFTER_EXEC = msgspec.structs.replace(_OUTSIDE, command=("python", "y"))


@pytest.mark.parametrize(
    "order",
    [
        (_OUTSIDE, _AFTER_EXEC, _HELLO, _WORKER),
        (_HELLO, _WORKER, _OUTSIDE, _AFTER_EXEC),
        (_OUTSIDE, _HELLO, _AFTER_EXEC, _WORKER),
    ],
)
def test_what_is_known_of_a_process_adds_up(order: tuple[ProcessStart, ...]) -> None:
    """Breaks when the order of files decides whether a process has its name or its command."""
    recording = Recording(_RUN, "")
    for start in order:
        recording.add(start)
    merged = recording.starts["1-1"]
    assert (merged.kind, merged.name) == ("worker", "worker 0")
    assert merged.command == ("python", "y")
    assert merged.python == "3.11.7"
    assert merged.environment == {"A": "1"}


_LIKE_ITS_PARENT = msgspec.structs.replace(_OUTSIDE, kind="child")
_HELPER = msgspec.structs.replace(_OUTSIDE, kind="helper", command=("python", "-c", "main(5)"))


@pytest.mark.parametrize(
    "order", [(_LIKE_ITS_PARENT, _HELPER, _HELLO), (_HELLO, _LIKE_ITS_PARENT, _HELPER)]
)
def test_seen_before_its_exec_a_process_is_what_it_was_later(
    order: tuple[ProcessStart, ...],
) -> None:
    """Breaks when a resource tracker that still looked like the program is counted as a worker."""
    recording = Recording(_RUN, "")
    for start in order:
        recording.add(start)
    assert recording.starts["1-1"].kind == "helper"


# ── the header ──


def _why(directory: Path) -> LeakscopeError:
    with pytest.raises(LeakscopeError) as caught:
        load(str(directory))
    return caught.value


def test_folder_that_is_no_recording(tmp_path: Path) -> None:
    """Breaks when a wrong path gives a traceback or an empty report."""
    (tmp_path / "notes.jsonl").write_text("{}\n")
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        assert _why(place).slug == "not-a-recording"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": "one"}', b'{"format": 1}', b"\xff\xfe", b"\0" * 99],
)
def test_corrupt_header(content: bytes, tmp_path: Path) -> None:
    """Breaks when a damaged run.json raises anything but the error that says so."""
    (tmp_path / RUN_FILE).write_bytes(content)
    assert _why(tmp_path).slug == "corrupt-recording"


def test_header_cut_at_every_byte(tmp_path: Path) -> None:
    """Breaks when half a header is taken for a whole one."""
    write_run(str(tmp_path), _RUN)
    content = (tmp_path / RUN_FILE).read_bytes()
    assert read_run(str(tmp_path)) == _RUN
    for cut in range(len(content.rstrip())):
        (tmp_path / RUN_FILE).write_bytes(content[:cut])
        assert _why(tmp_path).slug == "corrupt-recording", cut


def test_newer_format_is_said_even_if_all_else_changed(tmp_path: Path) -> None:
    """Breaks when a later header's new shape is called corrupt instead of newer."""
    (tmp_path / RUN_FILE).write_text(json.dumps({"format": FORMAT_VERSION + 1, "id": {"new": []}}))
    error = _why(tmp_path)
    assert error.slug == "recording-too-new"
    assert str(FORMAT_VERSION + 1) in error.why


def test_header_that_cannot_be_opened(tmp_path: Path) -> None:
    """Breaks when run.json is a folder, of all things, and a traceback is shown."""
    (tmp_path / RUN_FILE).mkdir()
    assert _why(tmp_path).slug == "corrupt-recording"


def test_header_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a header is written in place, where a reader can see half of it."""
    seen: list[list[str]] = []
    replace = os.replace

    def spy(source: str, target: str) -> None:
        seen.append(sorted(path.name for path in tmp_path.iterdir()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spy)
    write_run(str(tmp_path), _RUN)
    assert seen == [["run.json.part"]]
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


# ── names ──


@given(name=st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_start_ticks_behind_any_command_name(name: bytes) -> None:
    """Breaks when a process called `a) R 1 (b` shifts the fields of /proc/pid/stat."""
    fields = b"S " + b" ".join(b"%d" % number for number in range(4, 53))
    assert parse_start_ticks(b"4711 (" + name + b") " + fields) == 22


def test_process_name_is_stable_and_own(tmp_path: Path) -> None:
    """Breaks when agent and supervisor would name the same process differently."""
    name = name_process(os.getpid())
    assert name == name_process(os.getpid())
    pid, _, ticks = name.partition("-")
    assert (int(pid), ticks.isdigit()) == (os.getpid(), True)
    with pytest.raises(FileNotFoundError):
        name_process(2**22 + 1)


@given(raw=st.binary(max_size=20))
def test_words_of_the_system_become_text(raw: bytes) -> None:
    """Breaks when an argument that is not UTF-8 cannot be recorded."""
    word = storable(raw.decode(sys.getfilesystemencoding(), "surrogateescape"))
    assert decode_record(encode(Gap(word, ""))) == Gap(word, "")
