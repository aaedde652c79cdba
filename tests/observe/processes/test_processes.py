"""A process tree from outside, with the surprises of /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leakscope.observe.processes.proc_files import (
    Found,
    Watched,
    age_of,
    command_of,
    environment_of,
    find_tree,
)
from leakscope.observe.processes.tree import kind_of, slow_pause, unfollowed_flag
from leakscope.record.format import name_process

_MIB = 1 << 20


def test_tree_has_children_of_threads_and_of_children(tmp_path: Path) -> None:
    """Breaks when a child started in a thread, or a grandchild, is not found."""
    code = (
        "import subprocess, sys, threading\n"
        "def start():\n"
        "    child = subprocess.Popen(['sh', '-c', 'sleep 60 & echo $! $$; wait'],"
        " stdout=subprocess.PIPE, start_new_session=True)\n"
        "    print(child.stdout.readline().decode(), end='', flush=True)\n"
        "    stop.wait()\n"
        "stop = threading.Event()\n"
        "thread = threading.Thread(target=start, daemon=True); thread.start()\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        grandchild, child = map(int, parent.stdout.readline().split())
        try:
            tree = find_tree(parent.pid)
            assert [(found.pid, found.parent_pid) for found in tree] == [
                (parent.pid, os.getpid()),
                (child, parent.pid),
                (grandchild, child),
            ]
            assert tree[0].process == name_process(parent.pid)
        finally:
            os.kill(grandchild, 9)
            parent.kill()


def test_ended_processes_are_not_in_the_tree() -> None:
    """Breaks when a zombie is watched as if it lived, or its absence raises."""
    process = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
    watched = Watched(Found("x", process.pid, 1))
    assert find_tree(process.pid) == []
    assert watched.rss_bytes() is None
    process.wait()
    process.stdout.close()
    assert find_tree(process.pid) == []
    assert watched.rss_bytes() is None
    values, gaps = watched.read_slow()
    assert values == {}
    assert set(gaps) == {"smaps_rollup", "stat", "fd"}
    watched.close()
    assert command_of(process.pid) == ()
    assert environment_of(process.pid, ("PATH",)) == {}
    with pytest.raises(OSError, match="No such"):
        Watched(Found("x", process.pid, 1))


def test_the_name_of_a_process_tells_its_age() -> None:
    """Breaks when ticks are taken for seconds, or the clock that stops in suspend for the other."""
    before_s = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (found,) = find_tree(process.pid)
        time.sleep(0.1)
        age_s = age_of(found.process) / 1e9
        assert 0.09 <= age_s <= time.monotonic() - before_s + 0.02
        assert process.stdin is not None
        process.stdin.close()


def test_numbers_of_a_live_process_fit_together() -> None:
    """Breaks when a unit, a field number or the sum of private and shared is wrong."""
    code = "import sys; x = bytearray(50 << 20); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "a b", "", "ü"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RANK": "3", "EMPTY": ""},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watched = Watched(Found("x", process.pid, os.getpid()))
        rss = watched.rss_bytes()
        values, gaps = watched.read_slow()
        command = command_of(process.pid)
        told = environment_of(process.pid, ("RANK", "EMPTY", "NOT_THERE"))
        watched.close()
    assert gaps == {}
    assert rss is not None
    assert 50 * _MIB < rss < 100 * _MIB
    assert abs(values["rss_bytes"] - rss) < 4 * _MIB
    assert values["uss_bytes"] > 50 * _MIB
    assert abs(values["uss_bytes"] + values["shared_bytes"] - values["rss_bytes"]) < _MIB
    assert values["uss_bytes"] <= values["pss_bytes"] <= values["rss_bytes"]
    assert values["threads_count"] == 1
    assert 3 <= values["descriptors_count"] < 20
    assert values["minor_faults_count"] > 1000
    assert command == (sys.executable, "-c", code, "a b", "", "ü")
    assert told == {"RANK": "3", "EMPTY": ""}


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("python -I x.py", "-I"),
        ("/usr/bin/python3.12 -uBE -m mod", "-E"),
        ("python -W error -X dev -S x.py", "-S"),
        ("python -Werror -Xdev -I", "-I"),
        ("python --check-hash-based-pycs always -I x.py", "-I"),
        ("python -XI x.py", None),
        ("python -W -I x.py", None),
        ("python x.py -I", None),
        ("python -c -I", None),
        ("python -cI", None),
        ("python -m mod -E", None),
        ("python -um mod -E", None),
        ("python - -I", None),
        ("python", None),
        ("bash -I", None),
        ("", None),
    ],
)
def test_flag_that_keeps_the_agent_out(line: str, flag: str | None) -> None:
    """Breaks when an argument of the program is taken for a flag of the interpreter."""
    assert unfollowed_flag(line.split()) == flag


def test_helpers_of_multiprocessing_are_told_apart() -> None:
    """Breaks when the resource tracker is listed among the program's own children."""
    tracker = "from multiprocessing.resource_tracker import main;main(4)"
    server = "from multiprocessing.forkserver import main; main(3, 4, [])"
    spawned = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"
    assert kind_of(["python", "-c", tracker]) == "helper"
    assert kind_of(["python", "-s", "-c", server]) == "helper"
    assert kind_of(["python", "-c", spawned, "--multiprocessing-fork"]) == "child"


@pytest.mark.parametrize("members", [2, 9, 72])
@pytest.mark.parametrize(("age_s", "share"), [(0.5, 0.375), (20.0, 0.01), (3600.0, 0.01)])
def test_many_processes_take_no_more_of_a_core_than_three(
    members: int, age_s: float, share: float
) -> None:
    """Breaks when each of eight workers is read as often as if it were the only one."""
    assert members / slow_pause(members, age_s) <= share
