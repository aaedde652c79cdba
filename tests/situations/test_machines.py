"""Why only here: what a recording says of its machine, and what two of them say together."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from running import LEAKSCOPE, PROGRAMS, environment, run_watched

pytestmark = pytest.mark.torch

_SECRETS = {
    "HF_TOKEN": "hf-variable-9f3b71",
    "DB_PASSWORD": "password-variable-77aa",
    "WANDB_API_KEY": "key-variable-0c0ffee",
    "PYTORCH_SECRET": "in-an-allowed-family-31",
    "TF_TOKEN_host": "not-tensorflows-42cd",
}
_SAID = {
    "--token=": "said-with-equals-5511",
    "--api-key": "said-as-two-words-6622",
    "postgres://me:": "said-in-an-address-7733",
}


def test_no_secret_is_in_any_file(tmp_path: pathlib.Path) -> None:
    """Breaks when one byte of a secret's value reaches a file of the recording or a report."""
    cwd = tmp_path / "run"
    cwd.mkdir()
    words = [
        *("--token=" + _SAID["--token="], "--api-key", _SAID["--api-key"]),
        f"postgres://me:{_SAID['postgres://me:']}@host/db",
        *("again", _SECRETS["HF_TOKEN"]),
    ]
    ran = run_watched([PROGRAMS / "keeps_results.py", "120", *words], cwd, env=_SECRETS)
    assert ran.status == 0, ran.seen
    for ending in ("md", "txt", "json"):
        out = str(ran.directory.parent / f"again.{ending}")
        command = [*LEAKSCOPE, "report", str(ran.directory), "-o", out]
        subprocess.run(command, check=True, env=environment(_SECRETS))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "supervisor.jsonl", "again.md", "report.json"} <= {f.name for f in files}
    for path in files:
        content = path.read_bytes()
        for value in (*_SECRETS.values(), *_SAID.values()):
            assert os.fsencode(value) not in content, f"{value} is in {path}"
            assert value not in path.name
    assert "<hidden>" in (ran.directory / "run.json").read_text(encoding="utf-8")
    again = subprocess.run(
        [*LEAKSCOPE, "verify", "--before", str(ran.directory)],
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert again.returncode == 2, "a command with hidden words must not be run"
    assert b"hidden-words" in again.stderr


def test_a_recording_knows_its_machine(tmp_path: pathlib.Path) -> None:
    """The settings are those of the program itself, libraries have paths, packages builds."""
    words = ["env", "MALLOC_ARENA_MAX=3", "python", str(PROGRAMS / "keeps_results.py"), "60"]
    path = os.pathsep.join([os.path.dirname(LEAKSCOPE[0]), os.environ["PATH"]])
    ran = run_watched(words, tmp_path, env={"PATH": path})
    assert ran.status == 0, ran.seen
    machine = ran.report["machine"]
    assert machine["allocator_settings"]["MALLOC_ARENA_MAX"] == "3"
    assert machine["libraries"]["gomp"].endswith(".so.1")
    assert "torch" in machine["packages"]
    assert "cp3" in machine["builds"]["torch"]
    assert {"huge_pages.enabled", "vm.overcommit_memory", "cpu.model"} <= set(machine["facts"])
