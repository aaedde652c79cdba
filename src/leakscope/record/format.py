"""How a recording lies on disk: a folder with `run.json` and one file per process.

    .leakscope/<run>/
        run.json                    the header (`Run`)
        supervisor.jsonl            what was seen from outside
        <pid>-<startticks>.jsonl    what each Python process said about itself
        output.txt                  what it printed while the live view had its terminal

Every file is JSON lines, append-only, one `write` per record. A record is one of
`model.Record`, told apart by its `type`. What each version changed:

    1   the first
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import accumulate

import msgspec

from leakscope.model import Record, Run

RUN_FILE = "run.json"
SUPERVISOR_FILE = "supervisor.jsonl"
SUFFIX = ".jsonl"
OUTPUT_FILE = "output.txt"

encode = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(Record).decode
decode_run = msgspec.json.Decoder(Run).decode


def storable(word: str) -> str:
    """Words from the system may hold bytes that are no text; JSON cannot, so they are escaped."""
    return word.encode("utf-8", "backslashreplace").decode("utf-8")


def file_of(process: str) -> str:
    return process + SUFFIX


def name_process(pid: int) -> str:
    """`pid-startticks`, which a later process with the same pid cannot share."""
    return f"{pid}-{start_ticks(pid)}"


def start_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return parse_start_ticks(stat.read())


def parse_start_ticks(stat: bytes) -> int:
    # The command name may hold spaces and parentheses: count from the last one.
    return int(stat[stat.rindex(b")") + 2 :].split()[19])


def delta_code(values: Iterable[int | None]) -> list[int | None]:
    """Differences to the last value that was read: mostly zeros and small numbers."""
    coded: list[int | None] = []
    last = 0
    for value in values:
        if value is None:
            coded.append(None)
        else:
            coded.append(value - last)
            last = value
    return coded


def undo_delta(coded: Iterable[int | None]) -> list[int | None]:
    differences = list(coded)
    read = [difference for difference in differences if difference is not None]
    if len(read) == len(differences):  # the usual case, and several times as fast
        return [*accumulate(read)]
    values: list[int | None] = []
    last = 0
    for difference in differences:
        if difference is None:
            values.append(None)
        else:
            last += difference
            values.append(last)
    return values


def write_run(directory: str, run: Run) -> None:
    """Write the header so that a reader sees all of it or none."""
    path = os.path.join(directory, RUN_FILE)
    part = path + ".part"
    with open(part, "wb") as file:
        file.write(msgspec.json.format(encode(run), indent=1) + b"\n")
    os.replace(part, path)
