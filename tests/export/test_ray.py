"""The Ray engine packs and judges as tasks, and nobody can tell from the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from make_job import job
from running import PROGRAMS, environment, run_watched

pytest.importorskip("pyarrow", reason="needs leakscope[scale]")
pytest.importorskip("duckdb", reason="needs leakscope[scale]")


pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs leakscope[ray]")

_OURS = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "RAY_USAGE_STATS_ENABLED": "0"}


def _leakscope(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "leakscope", *words],
        env=environment(_OURS),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ray_gives_the_same_report(tmp_path: Path) -> None:
    """Breaks when the answer depends on where it was worked out."""
    directory = job(tmp_path / "job", ranks=6)
    local, ray = str(tmp_path / "local"), str(tmp_path / "ray")
    _leakscope("pack", directory, "-o", local)
    _leakscope("pack", directory, "-o", ray, "--engine", "ray")
    files = [
        {str(path.relative_to(one)): path.stat().st_size for path in Path(one).rglob("*.parquet")}
        for one in (local, ray)
    ]
    assert files[0] == files[1]
    _leakscope("report", local, "-o", str(tmp_path / "local.json"))
    _leakscope("report", local, "-o", str(tmp_path / "ray.json"), "--engine", "ray")
    here, there = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("local", "ray"))
    assert there == here
    assert here["job"]["deviating"] == [2]
    assert [one["fingerprint"] for one in here["findings"]]


def test_workers_of_ray_are_watched(tmp_path: Path) -> None:
    """Breaks when the hook does not start the agent in a worker, or the worker has no name."""
    ran = run_watched([PROGRAMS / "ray_actor.py"], tmp_path, env=_OURS)
    assert ran.status == 0, ran.seen
    recording = ran.recording()
    pid = int(ran.stdout.split()[-1])
    (process,) = [one for one, start in recording.starts.items() if start.pid == pid]
    assert process in recording.followed
    assert recording.starts[process].kind == "worker"
    assert (recording.starts[process].name or "").startswith("ray ")
