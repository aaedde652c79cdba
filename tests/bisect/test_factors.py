"""What can be changed from outside, and what is said where it cannot."""

from __future__ import annotations

import msgspec

from leakscope.bisect.factors import Factor, factors_for, most_runs
from leakscope.model import Cause, LeftOut, Machine

_MACHINE = Machine("here", "Linux", "3.11.7", 2, allocator="glibc 2.36", libc="glibc 2.36")


def _for(
    machine: Machine, environment: dict[str, str] | None = None, *, live_grows: bool = False
) -> tuple[dict[str, Factor], dict[str, LeftOut]]:
    factors, left_out = factors_for(machine, environment or {}, live_grows=live_grows)
    return {one.id: one for one in factors}, {one.factor: one for one in left_out}


def test_a_plain_program_has_its_allocator_and_the_collector() -> None:
    factors, left_out = _for(_MACHINE)
    assert {"arenas", "mmap-threshold", "trim-threshold", "thread-cache", "collect"} <= set(factors)
    assert {"one-thread", "onednn-cache", "start-method"} <= set(left_out)
    assert all(one.why for one in left_out.values())
    assert len(factors) + 3 <= most_runs()


def test_torch_brings_threads_and_a_cache() -> None:
    torch = msgspec.structs.replace(
        _MACHINE, packages={"torch": "2.13.0"}, libraries={"gomp": "/x/libgomp.so.1"}
    )
    factors, _ = _for(torch)
    assert factors["one-thread"].environment["OMP_NUM_THREADS"] == "1"
    assert factors["onednn-cache"].group is Cause.CACHE
    _, left_out = _for(torch, {"OMP_NUM_THREADS": "1"})
    assert "already" in left_out["one-thread"].why


def test_what_is_set_already_is_kept_or_left_out() -> None:
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.check=3", "MALLOC_ARENA_MAX": "1"}
    factors, left_out = _for(_MACHINE, tunables)
    assert "already" in left_out["arenas"].why
    value = factors["thread-cache"].environment["GLIBC_TUNABLES"]
    assert value == "glibc.malloc.check=3:glibc.malloc.tcache_count=0"


def test_another_malloc_has_no_settings_of_glibc() -> None:
    factors, left_out = _for(msgspec.structs.replace(_MACHINE, allocator="jemalloc"))
    assert "arenas" not in factors
    assert "jemalloc" in left_out["settings of glibc"].why


def test_workers_get_the_other_start_method_and_an_honest_word() -> None:
    forked = msgspec.structs.replace(_MACHINE, facts={"workers.start_method": "fork"})
    factors, left_out = _for(forked, {"PYTHONPATH": "/mine"})
    assert factors["start-spawn"].environment["LEAKSCOPE_START_METHOD"] == "spawn"
    assert factors["start-spawn"].environment["PYTHONPATH"].endswith(":/mine")
    assert "cannot be changed from outside" in left_out["number of workers"].why


def test_the_most_telling_comes_first() -> None:
    """No allocator is the reason for memory in use; for memory that is held it is the first."""
    for live_grows in (True, False):
        factors, _ = factors_for(_MACHINE, {}, live_grows=live_grows)
        assert (factors[0].group is Cause.ALLOCATOR) is not live_grows
