"""The catalogue of machine effects: whole, on its page, and asked for the right memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from leakscope.explain.effects import judge_difference, load_effects, read_effects
from leakscope.model import Likelihood, Symptom

_ROOT = Path(__file__).parents[2]
_ENTRY = """
[[effect]]
id = "{id}"
title = "a title"
facts = ["setting X"]
explains = ["held"]
weight = {weight}
because = "it does{stop}"
remedy = "set it"
url = "https://example.org"
"""


def test_the_page_has_every_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an effect is added and `python docs/make_effects.py` is forgotten."""
    monkeypatch.syspath_prepend(str(_ROOT))
    from docs.make_effects import document  # type: ignore[import-not-found,unused-ignore]

    page = _ROOT / "docs" / "machine-effects.md"
    assert page.read_text(encoding="utf-8") == document()
    sys.modules.pop("docs.make_effects", None)


def test_ids_are_used_once() -> None:
    ids = [effect.id for effect in load_effects()]
    assert len(ids) > 20
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("id_", "weight", "stop", "wrong"),
    [("Bad Id", 0.5, "", "its id"), ("good", 2, "", "weight"), ("good", 0.5, ".", "because")],
)
def test_a_wrong_entry_is_refused(id_: str, weight: float, stop: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        read_effects(_ENTRY.format(id=id_, weight=weight, stop=stop), "x.toml")


@pytest.mark.parametrize(
    ("name", "values", "symptom", "more", "likelihood", "effect"),
    [
        ("setting MALLOC_ARENA_MAX", (None, "1"), "held", 0, "likely", "glibc-arenas"),
        ("setting MALLOC_ARENA_MAX", (None, "1"), "held", 1, "unlikely", "glibc-arenas"),
        ("setting MALLOC_ARENA_MAX", (None, "1"), "live", 0, "unlikely", "glibc-arenas"),
        ("cores", ("2", "64"), "held", 1, "likely", "glibc-arenas"),
        ("allocator", ("glibc 2.36", "jemalloc"), "held", 1, "likely", "other-allocator"),
        ("fact huge_pages.enabled", ("never", "always"), "held", 1, "likely", "huge-pages"),
        ("fact system.kernel", ("6.11.3", "6.10.1"), "peak", 0, "likely", "kernel-6-11-pinned"),
        ("fact system.kernel", ("6.12.3", "6.10.1"), "peak", 0, "possible", "kernel"),
        ("fact driver.rocm", ("7.2.4", "7.1.1"), "live", 1, "likely", "rocm-7-1-1"),
        ("fact workers.start_method", ("fork", "spawn"), "workers", 1, "likely", "spawned-copies"),
        ("fact workers.start_method", ("fork", "spawn"), "copied", 0, "likely", None),
        ("package torch", ("2.12", "2.13"), "live", 1, "possible", "package-version"),
        ("build torch", ("pip a", "conda b"), "live", 1, "possible", "package-build"),
    ],
)
def test_likelihood(
    name: str,
    values: tuple[str | None, str | None],
    symptom: str,
    more: int,
    likelihood: str,
    effect: str | None,
) -> None:
    """Breaks when an effect is blamed for memory it does not touch, or the wrong way round."""
    cores = (2, 64) if name == "cores" else (2, 2)
    judged = judge_difference(name, values, {Symptom(symptom): more}, cores)
    assert judged is not None
    assert judged.likelihood is Likelihood(likelihood)
    assert effect is None or judged.effect.id == effect


def test_nothing_is_known_of_everything() -> None:
    assert judge_difference("fact moon.phase", ("new", "full"), {Symptom.HELD: 0}, (2, 2)) is None
