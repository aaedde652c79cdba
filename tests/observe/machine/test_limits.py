"""Limits and use of memory, from cgroup trees of both versions as they lie on disk."""

from __future__ import annotations

from pathlib import Path

from leakscope.observe.machine.limits import find_cgroup, read_meminfo, smallest_limit

_MIB = 1 << 20
_NO_LIMIT_V1 = "9223372036854771712"


def _proc(tmp_path: Path, lines: str) -> str:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text(lines)
    return str(tmp_path / "proc")


def _group(root: Path, path: str, files: dict[str, str]) -> Path:
    directory = root / path if path else root
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in ({"cgroup.procs": ""} | files).items():
        (directory / name).write_text(content)
    return directory


def test_version_1_on_a_machine_with_both(tmp_path: Path) -> None:
    """Breaks when the empty version 2 tree of a hybrid machine is taken for the real one."""
    root = tmp_path / "sys"
    _group(root / "memory", "", {"memory.limit_in_bytes": _NO_LIMIT_V1})
    # The group whose limit counts is the parent: its use counts too, siblings and all.
    _group(
        root / "memory",
        "job",
        {
            "memory.limit_in_bytes": f"{300 * _MIB}\n",
            "memory.usage_in_bytes": f"{120 * _MIB}\n",
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            "memory.stat": f"cache 1\ntotal_cache {50 * _MIB}\ntotal_shmem {20 * _MIB}\n",
        },
    )
    own = _group(
        root / "memory",
        "job/7",
        {"memory.limit_in_bytes": _NO_LIMIT_V1, "memory.usage_in_bytes": "1\n"},
    )
    _group(root, "", {"memory.current": "5"})
    proc = _proc(tmp_path, "9:pids:/\n4:hugetlb,memory:/job/7\n0::/\n")
    cgroup = find_cgroup(7, str(root), proc)
    assert cgroup is not None
    assert (cgroup.version, cgroup.directory) == (1, str(own))
    assert cgroup.limit_bytes() == 300 * _MIB  # the parent's: its own is none
    assert cgroup.read() == {
        "cgroup_use_bytes": 120 * _MIB,
        "oom_kills_count": 3,
        "page_cache_bytes": 30 * _MIB,
    }


def test_version_2_takes_the_smallest_limit_on_the_way_up(tmp_path: Path) -> None:
    """Breaks when "max" is read as a number, or a tighter limit above is missed."""
    root = tmp_path / "sys"
    _group(root, "", {})
    _group(root, "pod/box", {"memory.max": f"{400 * _MIB}\n"})
    own = _group(root, "pod/box/own", {"memory.max": "max\n", "memory.current": "1\n"})
    _group(
        root,
        "pod",
        {
            "memory.max": f"{200 * _MIB}\n",
            "memory.current": f"{90 * _MIB}\n",
            "memory.events": "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n",
            "memory.stat": f"anon 5\nfile {10 * _MIB}\nshmem {10 * _MIB}\n",
        },
    )
    cgroup = find_cgroup(7, str(root), _proc(tmp_path, "0::/pod/box/own\n"))
    assert cgroup is not None
    assert (cgroup.version, cgroup.directory) == (2, str(own))
    assert cgroup.limit_bytes() == 200 * _MIB
    assert cgroup.read() == {
        "cgroup_use_bytes": 90 * _MIB,
        "oom_kills_count": 2,
        "page_cache_bytes": 0,
    }


def test_container_sees_the_hosts_path_and_its_own_root(tmp_path: Path) -> None:
    """Breaks when a path that only exists on the host means no limit at all."""
    root = tmp_path / "sys"
    _group(root, "", {"memory.max": f"{64 * _MIB}\n", "memory.current": "1\n"})
    proc = _proc(tmp_path, "0::/kubepods/burstable/pod1/abc\n")
    cgroup = find_cgroup(7, str(root), proc)
    assert cgroup is not None
    assert cgroup.limit_bytes() == 64 * _MIB
    limit = smallest_limit(cgroup)
    assert limit is not None
    assert limit == (64 * _MIB, "cgroup v2 limit")


def test_machine_without_a_memory_controller(tmp_path: Path) -> None:
    """Breaks when nothing to read raises instead of leaving RAM as the limit."""
    proc = _proc(tmp_path, "1:cpu:/\n0::/\n")
    assert find_cgroup(7, str(tmp_path / "nowhere"), proc) is None
    assert find_cgroup(8, str(tmp_path), proc) is None
    limit = smallest_limit(None)
    assert limit is not None
    assert limit == (read_meminfo()["ram_bytes"], "RAM of this machine")


def test_limit_above_ram_is_not_the_limit(tmp_path: Path) -> None:
    """Breaks when a generous cgroup hides that the machine itself is smaller."""
    root = tmp_path / "sys"
    _group(root, "", {"memory.max": str(1 << 50), "memory.current": "1"})
    limit = smallest_limit(find_cgroup(7, str(root), _proc(tmp_path, "0::/\n")))
    assert limit is not None
    assert limit.source == "RAM of this machine"


def test_unreadable_numbers_are_absent(tmp_path: Path) -> None:
    """Breaks when a file that is empty or odd becomes a zero or an exception."""
    root = tmp_path / "sys"
    _group(root, "", {"memory.current": "", "memory.max": "lots", "memory.events": "oom_kill x\n"})
    cgroup = find_cgroup(7, str(root), _proc(tmp_path, "0::/\n"))
    assert cgroup is not None
    assert cgroup.limit_bytes() is None
    assert cgroup.read() == {}


def test_meminfo_of_this_machine() -> None:
    """Breaks when kilobytes are taken for bytes."""
    values = read_meminfo()
    assert 0 < values["available_bytes"] <= values["ram_bytes"]
    assert values["ram_bytes"] > 256 * _MIB
