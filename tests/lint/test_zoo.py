"""What the linter finds in the zoo: which leaks show in the source, and by which rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.lint.reading import hits_in

_ZOO = Path(__file__).parents[2] / "zoo" / "cpu"

_VISIBLE = {
    "asyncio-tasks-kept": ("LS512", 34),
    "attention-maps-kept": ("LS101", 22),
    "auroc-never-reset": ("LS103", 30),
    "closure-captures-hook": ("LS302", 16),
    "curvature-create-graph": ("LS105", 19),
    "detections-crop-views": ("LS509", 30),
    "drift-summed-in-local": ("LS102", 25),
    "ema-teacher-graph": ("LS102", 21),
    "errors-by-file": ("LS504", 41),
    "finalizer-holds-owner": ("LS513", 17),
    "first-sample-view": ("LS509", 17),
    "forked-worker-history": ("LS202", 28),
    "hidden-retain-graph": ("LS104", 30),
    "hook-every-step": ("LS301", 17),
    "log-records-kept": ("LS507", 20),
    "maml-fast-weights": ("LS101", 43),
    "manual-sgd-losses": ("LS101", 24),
    "mask-cache-any-shape": ("LS502", 13),
    "mask-hooks-every-epoch": ("LS301", 23),
    "memory-handler-without-target": ("LS507", 14),
    "negatives-cat": ("LS503", 31),
    "prompt-embedding-cache": ("LS502", 29),
    "render-futures": ("LS512", 28),
    "rnn-state-carried": ("LS104", 29),
    "spawned-loader-log": ("LS202", 27),
    "spike-train-concatenate": ("LS503", 16),
    "tee-branch-behind": ("LS205", 26),
    "test-after-training": ("LS101", 40),
}
"""By pair: the rule and the line of leaky.py."""

_KEPT_ON_PURPOSE = "a container of results grows; whether that is meant, the source does not say"
_NOT_VISIBLE = {
    "big-and-small": _KEPT_ON_PURPOSE,
    "callbacks-every-epoch": "that the method runs once an epoch is in another class",
    "curve-copied-every-step": _KEPT_ON_PURPOSE,
    "deque-without-maxlen": _KEPT_ON_PURPOSE,
    "embeddings-after-warmup": _KEPT_ON_PURPOSE,
    "episode-registry": "a list on a class is as often a registry of few things",
    "features-by-class": _KEPT_ON_PURPOSE,
    "frozen-cycles": "the cycle is spread over two classes",
    "generator-keeps-past": _KEPT_ON_PURPOSE,
    "hf-trainer-callback": _KEPT_ON_PURPOSE,
    "list-rebound-history": _KEPT_ON_PURPOSE,
    "local-metrics-module": "the metric is in another file, and reset() is there but not called",
    "native-tables-ctypes": "close() exists and is not called: that is a matter of the flow",
    "ngram-token-set": _KEPT_ON_PURPOSE,
    "numpy-kmeans-history": _KEPT_ON_PURPOSE,
    "outputs-of-every-epoch": _KEPT_ON_PURPOSE,
    "pool-worker-cache": "a dict of results; how many keys there are, the source does not say",
    "population-kept": _KEPT_ON_PURPOSE,
    "queue-without-reader": "there is a reader; that it is not started depends on an argument",
    "replay-without-limit": _KEPT_ON_PURPOSE,
    "request-log-under-kv-cache": _KEPT_ON_PURPOSE,
    "rows-of-floats": _KEPT_ON_PURPOSE,
    "scores-by-sentence": _KEPT_ON_PURPOSE,
    "shared-memory-published": _KEPT_ON_PURPOSE,
    "slow-leak-under-lengths": _KEPT_ON_PURPOSE,
    "small-python-rows": _KEPT_ON_PURPOSE,
    "states-of-every-eval": _KEPT_ON_PURPOSE,
    "string-dedup": _KEPT_ON_PURPOSE,
    "targets-cached-by-id": "a dict of results; how many keys there are, the source does not say",
    "thread-local-history": _KEPT_ON_PURPOSE,
    "threaded-server": _KEPT_ON_PURPOSE,
    "threads-never-joined": "that nobody sets the event is a matter of the flow",
    "unanswered-requests": "the dict is emptied on one way and not on the other",
    "undo-linked-list": "a chain of objects: each store is a plain assignment",
    "weak-keys-strong-values": "that the value leads to its key is in another class",
}
"""Leaks that only a run shows, each with its reason."""

_FOLDERS = sorted(path.parent.name for path in _ZOO.glob("*/expected.toml"))


@pytest.mark.parametrize("name", _VISIBLE)
def test_what_shows_in_the_source_is_found(name: str) -> None:
    assert _VISIBLE[name] in {(rule, line) for rule, line in _hits(name, "leaky.py")}


@pytest.mark.parametrize("name", _NOT_VISIBLE)
def test_what_does_not_show_is_not_guessed(name: str) -> None:
    assert _hits(name, "leaky.py") == []


@pytest.mark.parametrize("name", _FOLDERS)
def test_the_cure_is_not_suspected(name: str) -> None:
    assert _hits(name, "fixed.py") == []


@pytest.mark.parametrize("name", sorted(set(_FOLDERS) - set(_VISIBLE) - set(_NOT_VISIBLE)))
def test_what_is_harmless_is_not_suspected(name: str) -> None:
    if 'leaky = "leak"' not in (_ZOO / name / "expected.toml").read_text(encoding="utf-8"):
        assert _hits(name, "leaky.py") == []


def _hits(name: str, file: str) -> list[tuple[str, int]]:
    text = (_ZOO / name / file).read_text(encoding="utf-8")
    return [(hit.rule, hit.line) for hit in hits_in(text, file)]
