"""A real program that leaks: the diff in its report stops it, and changes no number it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from running import LEAKSCOPE, environment, run_watched

pytestmark = pytest.mark.torch

_PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0  # for the mean
for step in range(240):
    x = torch.randn(64, 64)
    loss = model(x).pow(2).mean()
    penalty = model(x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += penalty  # still with its graph
    if step % 40 == 0:
        print(f"{step}: {loss.item():.6f} {total.item() / (step + 1):.6f}", flush=True)
"""


def _verify(folder: Path, *words: str) -> tuple[int, str, str]:
    import subprocess

    done = subprocess.run(
        [*LEAKSCOPE, "verify", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_diff_of_a_report_stops_the_leak_and_nothing_else(tmp_path: Path) -> None:
    """Breaks when the proposed change does not help, alters what is computed, or is made in the
    user's own file."""
    folder = tmp_path / "project"
    folder.mkdir()
    script = folder / "train.py"
    script.write_text(_PROGRAM)
    watched = run_watched(["train.py"], folder)
    finding = watched.report["findings"][0]
    assert "+    total += penalty.detach()  # still with its graph" in finding["fix"]["diff"]
    told = tmp_path / "told.json"
    before = str(watched.directory)
    code, out, said = _verify(
        folder, "--before", before, "--apply-fix", "--out", str(tmp_path / "after"), "--report",
        str(told),
    )  # fmt: skip
    verified = json.loads(told.read_text())
    assert (code, verified["change"]) == (0, "gone"), said
    assert verified["findings"][0]["change"] == "gone"
    assert said.startswith("GONE  The growth is gone: ")
    assert out == watched.stdout.decode()
    assert script.read_text() == _PROGRAM
    assert sorted(path.name for path in folder.iterdir() if path.name != ".leakscope") == [
        "train.py"
    ]
