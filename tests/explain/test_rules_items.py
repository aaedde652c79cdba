"""Rules that know what one item keeps, or in which process it is kept."""

from __future__ import annotations

import pytest

from make_case import HERE, case, rule_of

_POOL = (HERE, "/usr/lib/python3.11/concurrent/futures/process.py")
_RECEIVED = ("/site-packages/torch/multiprocessing/reductions.py", HERE)
_LIST = ("local kept in fit()", "list")
_SHARED = {"python": 1_000.0, "shared memory": 16_000.0}


def test_a_container_in_a_loader_worker() -> None:
    assert rule_of(case(*_LIST, process="worker", steps_from="fetch")) == "LS202"


def test_a_container_in_a_pool_worker() -> None:
    assert rule_of(case(*_LIST, process="child", frames=_POOL)) == "LS202"


@pytest.mark.parametrize("process", ["main", "child"])
def test_a_process_that_trains_is_no_worker(process: str) -> None:
    assert rule_of(case(*_LIST, process=process)) != "LS202"


def test_what_a_worker_holds_in_a_cache_is_told_as_a_cache() -> None:
    cached = case("lru_cache of read", "lru_cache", "[x]", "dict", process="worker")
    assert rule_of(cached) == "LS502"


def test_tensors_from_a_worker() -> None:
    assert rule_of(case(*_LIST, parts=_SHARED, frames=_RECEIVED)) == "LS203"


def test_tensors_that_were_shared_here() -> None:
    assert rule_of(case(*_LIST, parts=_SHARED)) != "LS203"


def test_tensors_from_a_worker_that_were_copied() -> None:
    assert rule_of(case(*_LIST, frames=_RECEIVED)) != "LS203"


@pytest.mark.parametrize(
    ("item", "below"),
    [
        ("function", (("closure batch", "Tensor [64, 64] float32"),)),
        ("partial", (("argument", "Tensor [64, 64] float32"),)),
    ],
)
def test_functions_with_what_they_close_over(item: str, below: tuple[tuple[str, str], ...]) -> None:
    assert rule_of(case(*_LIST, item=item, below=below)) == "LS506"


def test_functions_without_a_closure() -> None:
    assert rule_of(case(*_LIST, item="function")) != "LS506"


def test_an_item_that_has_a_function_among_other_things() -> None:
    kept = case(*_LIST, item="Job", below=((".batch", "Tensor [64, 64] float32"),))
    assert rule_of(kept) != "LS506"


@pytest.mark.parametrize(
    ("item", "below", "each"),
    [
        ("Tensor [3, 32, 32] float32", (("storage", "UntypedStorage [196608] uint8"),), 197_575.0),
        (
            "tuple",
            (("[x]", "Tensor [256] float32"), ("storage", "UntypedStorage [32768] uint8")),
            34_885.0,
        ),
        ("Crop", ((".pixels", "ndarray"), (".base", "ndarray")), 230_000.0),
        ("ndarray [24, 24] float32", ((".base", "ndarray"),), 230_000.0),
        ("ndarray [24] bool", ((".base", "ndarray"),), 230_000.0),
    ],
)
def test_a_small_view_of_something_large(
    item: str, below: tuple[tuple[str, str], ...], each: float
) -> None:
    assert rule_of(case(*_LIST, item=item, below=below, each=each)) == "LS509"


@pytest.mark.parametrize(
    ("item", "below", "each"),
    [
        ("ndarray [1, 64, 64] float32", ((".base", "ndarray"),), 16_585.0),
        (
            "tuple",
            (("[x]", "ndarray [64, 50] float32"), (".base", "Tensor [64, 50] float32")),
            13.9e3,
        ),
        ("Tensor [64, 64] float32", (), 2 * 16_384.0 + 900),
        ("Tensor [] float32", (), 900.0),
        ("tuple", (("[x]", "Tensor [64] float32"),), 50_000.0),
        (
            "tuple",
            (("[x]", "Tensor [256] float32"), ("storage", "UntypedStorage [8192] uint8")),
            34_885.0,
        ),
        ("Frame", ((".pixels", "Tensor [4] float32"),), 50_000.0),
    ],
)
def test_a_view_of_all_there_is(item: str, below: tuple[tuple[str, str], ...], each: float) -> None:
    """Reshaped, with a gradient, or so small that the tensor itself is what weighs."""
    assert rule_of(case(*_LIST, item=item, below=below, each=each)) != "LS509"
