"""How a recording lies on disk: a folder with `run.json` and one file per process.

    .leakscope/<run>/
        run.json                                        the header (`Run`)
        supervisor.jsonl                                what was seen from outside
        <pid>-<startticks>.<host>.jsonl                 what each Python process said about itself
        <pid>-<startticks>.<host>.rank3.restart0.jsonl  the same in a job of many ranks
        output.txt                                      what it printed under the live view

Every file is JSON lines, append-only, one `write` per record. A record is one of
`model.Record`, told apart by its `type`. What each version changed:

    1   the first
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
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


MACHINE = "machine"
"""The process, so to say, of rows about the machine itself."""


def machine_rows(host: str) -> str:
    """The same for one machine of several, in a merged recording."""
    return f"{MACHINE}@{host}"


def is_machine(process: str) -> bool:
    return process == MACHINE or process.startswith(f"{MACHINE}@")


RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
RESTART_VARIABLES = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
JOB_VARIABLES = (
    *RANK_VARIABLES,
    *RESTART_VARIABLES,
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
)
"""What launchers tell a process about its place in a job; no other variable is recorded."""


def number_in(environment: Mapping[str, str], names: Iterable[str]) -> int | None:
    """The first of these variables that is a number."""
    for name in names:
        value = environment.get(name, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None


def host_name() -> str:
    """This machine's, short, and fit for a file name."""
    return safe_host(os.uname().nodename)


def safe_host(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name.partition(".")[0]) or "host"


def file_of(process: str) -> str:
    """The file of a process of which nothing more is known."""
    return process + SUFFIX


def file_in_job(process: str, environment: Mapping[str, str]) -> str:
    """The file of a process of this machine, with its place in the job.

    The bootstrap builds the same name by itself."""
    name = f"{process}.{host_name()}"
    if (rank := number_in(environment, RANK_VARIABLES)) is not None:
        name += f".rank{rank}.restart{number_in(environment, RESTART_VARIABLES) or 0}"
    return name + SUFFIX


def process_of(file: str) -> str | None:
    """The process whose own file this is; None for the supervisor's and others."""
    process = file.partition(".")[0]
    return process if process.partition("-")[0].isdigit() else None


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
