"""Reading PyTorch's edges at any moment crashes nothing, warns of nothing and changes no result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[1] / "programs" / "torch_moments"
_TIMES = os.environ.get("TORCH_MOMENTS_TIMES", "1")
"""Each program is looked at in 20 rounds of its own in each of these runs."""

_ALONE = ("forced", "processes", "distributed", "package")
"""`forced` is no program; the others start processes, and are run by themselves."""

NAMES = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem not in _ALONE)


def _run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *words],
        cwd=FOLDER,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_looked_at_computes_the_same(name: str) -> None:
    """Breaks with a signal if a look inside `torch.jit.trace` asks for the shape of a tensor."""
    ran = _run("forced.py", "asked", "", _TIMES, name)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["same"] == int(_TIMES), said
    assert said["new_warnings"] == []
    assert said["taken"] + sum(said["refused"].values()) > 0, "it was not looked at"


@pytest.mark.parametrize("name", [one for one in _ALONE if one != "forced"])
def test_a_program_that_starts_others_computes_the_same(name: str) -> None:
    bare, looked = _run(f"{name}.py"), _run(f"{name}.py", TORCH_LOOKS="asked")
    assert (looked.returncode, looked.stdout) == (bare.returncode, bare.stdout), looked.stderr[
        -2000:
    ]
    assert bare.returncode == 0, bare.stderr[-2000:]
