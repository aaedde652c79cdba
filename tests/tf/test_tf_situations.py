"""Does training many models one after another leak? As users ask it, from run to remedy."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from leakscope.model import Outcome
from running import LEAKSCOPE, PROGRAMS, Watched, environment, run_watched

_FOLDS = Path(__file__).parents[2] / "zoo" / "tf" / "cross-validation-folds"
_ENV = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def _until_explained(program: Path, cwd: Path, rules: set[str]) -> Watched:
    for attempt in range(2):  # on a busy machine the first may be too short, and say so
        place = cwd / str(attempt)
        place.mkdir()
        ran = run_watched([program], place, env=_ENV)
        assert ran.status == 0, ran.seen
        if ran.report["verdict"] not in (Outcome.UNKNOWN.value, Outcome.GROWING.value):
            break
    assert rules <= set(_findings(ran))
    return ran


def _findings(ran: Watched) -> dict[str, dict[str, Any]]:
    return {finding["rule"]: finding for finding in ran.report["findings"]}


def test_models_in_a_list_are_told_from_what_the_framework_keeps(tmp_path: Path) -> None:
    """Breaks when the list is lost beside the registry, which grows with every model, too. What
    both lead to is told of the list: it is the program's."""
    ran = _until_explained(PROGRAMS / "tf_models_kept.py", tmp_path, {"LS905"})
    assert ran.report["verdict"] == Outcome.LEAK.value
    kept = ran.report["findings"][0]
    assert kept["rule"] == "LS905"
    assert "models" in " ".join(map(str, kept["holder"]))
    assert any("fit() was called" in note for note in ran.report["notes"])


def test_the_remedy_for_the_gradient_registry_is_proved(tmp_path: Path) -> None:
    """`del` and `clear_session()` are in the program already, and do not help; what the page about
    TensorFlow proposes does."""
    ran = _until_explained(_FOLDS / "leaky.py", tmp_path, {"LS902"})
    assert ran.report["verdict"] == Outcome.LEAK.value
    finding = ran.report["findings"][0]
    assert finding["rule"] == "LS902"
    assert "gradient registry" in " ".join(map(str, finding["holder"]))
    assert "clear_session() does not reach it" in finding["fix"]["text"]
    verified = subprocess.run(
        [*LEAKSCOPE, "verify", "--before", str(ran.directory), "--", str(_FOLDS / "remedied.py")],
        cwd=tmp_path,
        env=environment(_ENV),
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stderr
    assert "GONE" in verified.stdout + verified.stderr
