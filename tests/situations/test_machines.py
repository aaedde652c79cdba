"""Why only here: what a recording says of its machine, and what two of them say together."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Sequence

import msgspec
import pytest

import leakscope
from leakscope.bisect.state import read_state
from leakscope.model import Bisection, Cause, Comparison, Effect, Likelihood, Outcome, Symptom
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


def _recorded(tmp_path: pathlib.Path, name: str, *words: str, **env: str) -> pathlib.Path:
    cwd = tmp_path / "-".join([name, *words, *env])
    cwd.mkdir()
    ran = run_watched([PROGRAMS / name, *words], cwd, env=env)
    assert ran.status == 0, ran.seen
    return ran.directory


def _compared(a: pathlib.Path, b: pathlib.Path) -> Comparison:
    """As the command tells it to another program."""
    command = [*LEAKSCOPE, "compare", str(a), str(b), "--format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, env=environment())
    told = msgspec.json.decode(done.stdout, type=Comparison)
    assert told == leakscope.compare(a, b)
    return told


def test_2_1_the_setting_that_makes_it_hold_memory_comes_first(tmp_path: pathlib.Path) -> None:
    """Live and held are told apart; it is no leak; the setting that differs is named."""
    a = _recorded(tmp_path, "longer_requests.py")
    b = _recorded(tmp_path, "longer_requests.py", MALLOC_ARENA_MAX="1", OMP_DYNAMIC="false")
    comparison = _compared(a, b)
    assert comparison.symptoms[0] is Symptom.HELD
    assert "not kept by the program" in comparison.says
    first = comparison.differences[0]
    assert first.what == "setting MALLOC_ARENA_MAX"
    assert first.likelihood is Likelihood.LIKELY
    assert first.effect == "glibc-arenas"
    live = next(one for one in comparison.series if one.metric == "heap.in_use_bytes")
    assert live.a is not None
    assert live.a.outcome is Outcome.STEADY
    assert not live.differs


def test_2_2_workers_that_copy_what_they_read(tmp_path: pathlib.Path) -> None:
    """Only forked workers copy pages; the start method is why, and the finding is in one only."""
    a, b = (_recorded(tmp_path, "object_dataset.py", method) for method in ("fork", "spawn"))
    comparison = _compared(a, b)
    assert Symptom.COPIED in comparison.symptoms
    first = comparison.differences[0]
    assert (first.what, first.a, first.b) == ("fact workers.start_method", "fork", "spawn")
    assert first.effect == "forked-pages-copied"
    (finding,) = (one for one in comparison.findings if one.rule == "LS201")
    assert finding.a_bytes_per_step is not None
    assert finding.b_bytes_per_step is None


def test_2_3_workers_that_build_their_own_copy(tmp_path: pathlib.Path) -> None:
    """Three copies of 38 MiB under spawn, none under fork, and the start method is why."""
    a, b = (_recorded(tmp_path, "worker_tables.py", method) for method in ("fork", "spawn"))
    comparison = _compared(a, b)
    assert Symptom.WORKERS in comparison.symptoms
    assert comparison.a.workers == comparison.b.workers == 3
    shared, own = comparison.a.workers_private_bytes, comparison.b.workers_private_bytes
    assert shared is not None
    assert own is not None
    assert own - shared > 3 * 36 << 20
    first = comparison.differences[0]
    assert first.what == "fact workers.start_method"
    # Where something else differs by more, on a busy machine, it is the likeliest of the possible.
    assert first.likelihood in (Likelihood.LIKELY, Likelihood.POSSIBLE)
    assert first.effect == "spawned-copies"


def _bisect_words(out: pathlib.Path, name: str, only: Sequence[str]) -> list[str]:
    chosen = [word for factor in only for word in ("--only", factor)]
    report = str(out.parent / f"{out.name}.json")
    words = ["bisect", "--out", str(out), "--report", report, *chosen, "--", str(PROGRAMS / name)]
    return [*LEAKSCOPE, *words]


def _bisected(tmp_path: pathlib.Path, name: str, *only: str) -> Bisection:
    out = tmp_path / "bisect"
    done = subprocess.run(
        _bisect_words(out, name, only),
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert b" left" in done.stderr, "no word about the time"
    return msgspec.json.decode((tmp_path / "bisect.json").read_bytes(), type=Bisection)


def test_2_x_an_effect_of_the_allocator(tmp_path: pathlib.Path) -> None:
    bisection = _bisected(tmp_path, "longer_requests.py", "arenas", "trim-threshold", "collect")
    assert bisection.cause is Cause.ALLOCATOR, bisection.says
    effects = {one.factor: one.effect for one in bisection.factors}
    assert effects == {
        "arenas": Effect.REMOVED,
        "trim-threshold": Effect.REMOVED,
        "collect": Effect.SAME,
    }
    assert bisection.lead == "resident"


def test_2_x_a_cache_of_a_library(tmp_path: pathlib.Path) -> None:
    bisection = _bisected(tmp_path, "new_shapes.py", "onednn-cache", "arenas", "trim-threshold")
    assert bisection.cause is Cause.CACHE, bisection.says
    assert "ONEDNN_PRIMITIVE_CACHE_CAPACITY" in bisection.says


def test_2_x_a_leak(tmp_path: pathlib.Path) -> None:
    only = ("arenas", "trim-threshold", "mmap-threshold", "collect")
    bisection = _bisected(tmp_path, "keeps_results.py", *only)
    assert bisection.cause is Cause.KEPT, bisection.says
    assert "keeps_results.py:18" in bisection.says


def test_a_killed_bisect_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    """Breaks when runs that were made are made again, or a half-made one is taken for whole."""
    out = tmp_path / "bisect"
    words = _bisect_words(out, "longer_requests.py", ("arenas",))
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    ) as first:
        while (state := read_state(str(out))) is None or len(state.trials) < 2:
            assert first.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
    done = read_state(str(out))
    assert done is not None
    again = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert again.returncode == 0, again.stderr.decode()
    assert b"done before" in again.stderr
    state = read_state(str(out))
    assert state is not None
    assert state.trials[: len(done.trials)] == done.trials
    assert [(one.factor, one.number) for one in state.trials] == [
        *(("", 1), ("arenas", 1)),
        *(("", 2), ("arenas", 2)),
    ]
    assert state.is_done
    third = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert b"ALLOCATOR" in third.stdout
    assert b"run 5" not in third.stderr, "nothing is left to run"
