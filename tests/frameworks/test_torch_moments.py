"""A program that is looked at, whatever PyTorch is doing at that moment, computes the same.

`tests/programs/torch_moments` has a program for each moment; `forced.py` there says how they look.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from running import PROGRAMS, environment

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

FOLDER = PROGRAMS / "torch_moments"
_ROUNDS, _TIMES = "4", os.environ.get("TORCH_MOMENTS_TIMES", "5")
"""Each program is looked at in 20 rounds of its loop."""

GROUPS = {
    "tracing": [
        "jit_trace",
        "jit_script",
        "fx_symbolic_trace",
        "make_fx",
        "export",
        "traced_elsewhere",
        "fake_mode",
    ],
    "compiling": ["compile", "compile_interrupted"],
    "differentiating": [
        "backward_hooks",
        "saved_tensor_hooks",
        "custom_function",
        "transforms",
        "forward_mode",
        "backward_elsewhere",
        "distributed",
    ],
    "training": ["module_hooks", "grad_modes", "tensor_classes", "package", "processes"],
}
REFUSED = {
    "jit_trace": {"torch.jit.trace is recording"},
    "compile_interrupted": {"torch.compile is running this code"},
    "backward_elsewhere": {
        "another thread runs a backward pass",
        "another thread drops a gradient",
    },
}
"""At these moments a look would do harm. At all others it may be taken."""

_MAY_BE_REFUSED = {"traced_elsewhere": REFUSED["backward_elsewhere"]}
"""Another thread may be at such a moment, or not."""

_NEVER_SAFE = ("compile_interrupted",)
"""Not looked at in between."""


def run(source: str, names: list[str]) -> list[dict[str, Any]]:
    """What came of each program, looked at from its own places and from somewhere else."""
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "forced.py", "asked", source, _TIMES, *names],
        cwd=FOLDER,
        env=environment({"TORCH_LOOKS_ROUNDS": _ROUNDS}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (names[len(results)], ran.stderr[-3000:])
    assert [one["name"] for one in results] == names
    return results


@pytest.mark.parametrize("group", GROUPS)
def test_a_program_that_is_looked_at_computes_the_same(group: str) -> None:
    """Breaks when a look crashes the program, makes it warn or changes a bit of what it computes;
    and when a look is refused at a moment at which it would do no harm."""
    for result in run("", GROUPS[group]):
        name = result["name"]
        assert result["same"] == int(_TIMES), result
        assert result["new_warnings"] == [], result
        refused, expected = set(result["refused"]), REFUSED.get(name, set())
        assert refused <= expected | _MAY_BE_REFUSED.get(name, set()), result
        assert bool(refused) >= bool(expected), result
        assert result["taken"] > 0 or name in _NEVER_SAFE, result


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("timer", "jit_trace transforms custom_function saved_tensor_hooks make_fx"),
        ("thread", "jit_trace transforms custom_function backward_hooks module_hooks"),
    ],
)
def test_at_any_moment_and_from_any_thread(source: str, names: str) -> None:
    """Breaks when a moment that no program of these is about is not safe."""
    for result in run(source, names.split()):
        assert result["same"] == int(_TIMES), result
        assert result["new_warnings"] == [], result
        assert result["taken"] > 0, result
