"""Run a program bare and under `leakscope run`, the same way, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from leakscope.analysis import analyse
from leakscope.model import Report
from leakscope.record.reader import Recording, load

PYTHON = sys.executable
PROGRAMS = Path(__file__).parent / "programs"
LEAKSCOPE = (PYTHON, "-m", "leakscope")

_LIMIT_S = 120


class Ran(NamedTuple):
    """What the caller of a program sees of it."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def seen(self) -> tuple[int, str, str]:
        """For comparing with another run, in a form that reads well when they differ."""
        return self.status, self.stdout.decode(), self.stderr.decode()


class Watched(NamedTuple):
    """The same of a program under leakscope, and what was recorded."""

    status: int
    stdout: bytes
    stderr: bytes
    """The program's own; what leakscope added is in `said`."""
    said: str
    directory: Path
    report: dict[str, Any]

    @property
    def seen(self) -> tuple[int, str, str]:
        return self.status, self.stdout.decode(), self.stderr.decode()

    def recording(self) -> Recording:
        return load(str(self.directory))

    def process(self, name: str) -> dict[str, Any]:
        """The one process with this name in the report."""
        (found,) = (one for one in self.report["processes"] if one["name"] == name)
        assert isinstance(found, dict)
        return found

    def blind_spots(self) -> str:
        return "\n".join(f"{one['what']}: {one['why']}" for one in self.report["blind_spots"])


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, without anything that leakscope or the test runner put there."""
    foreign = ("LEAKSCOPE_", "PYTEST_", "COV_", "PYTHONPATH", "GITHUB_", "GITLAB_", "CI_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    kept.pop("CI", None)  # a run in CI says more
    # Two tests share two cores: more threads would only wait for each other.
    return kept | {"OMP_NUM_THREADS": "1"} | dict(more or {})


def run_plain(
    words: Sequence[str | os.PathLike[str]],
    cwd: Path,
    *,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Ran:
    """What Python itself makes of these words."""
    done = _run([PYTHON, *(os.fspath(word) for word in words)], cwd, env, options)
    return Ran(done.returncode, done.stdout, done.stderr)


def run_watched(
    words: Sequence[str | os.PathLike[str]],
    cwd: Path,
    *,
    own: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Watched:
    """The same words under leakscope, with a recording in `cwd/rec` and a JSON report."""
    outside = cwd.parent / f"{cwd.name}.leakscope"
    outside.mkdir(exist_ok=True)
    directory, report = outside / "rec", outside / "report.json"
    ours = ["run", "--quiet", "--out", str(directory), "--report", str(report), *own]
    done = _run([*LEAKSCOPE, *ours, *(os.fspath(word) for word in words)], cwd, env, options)
    own_stderr, said = split_stderr(done.stderr)
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Watched(done.returncode, done.stdout, own_stderr, said, directory, told)


def run_program(tmp_path: Path, name: str, *words: str, **env: str) -> Report:
    """Watch one of tests/programs in a folder of its own, and say what the recording shows."""
    cwd = tmp_path / "run"
    cwd.mkdir()
    ran = run_watched([PROGRAMS / name, *words], cwd, env=env)
    assert ran.status == 0, ran.seen
    return analyse(ran.recording())


def split_stderr(stderr: bytes) -> tuple[bytes, str]:
    """What the program wrote, and the lines of leakscope after it."""
    head, mark, tail = stderr.partition(b"leakscope: ")
    assert not head or not mark or head.endswith(b"\n"), "our line does not start its own line"
    return head, (mark + tail).decode()


def _run(
    command: list[str], cwd: Path, env: Mapping[str, str] | None, options: Mapping[str, Any]
) -> subprocess.CompletedProcess[bytes]:
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL} | dict(options)
    if "input" in settings:
        del settings["stdin"]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
        **settings,
    )


def pids_told(stdout: bytes, word: str) -> list[int]:
    """Programs print `word pid` for each process they make."""
    lines = (line.split() for line in stdout.decode().splitlines())
    return [int(line[1]) for line in lines if len(line) == 2 and line[0] == word]


def followed_pids(recording: Recording) -> set[int]:
    return {int(process.partition("-")[0]) for process in recording.followed}


def steps_of(recording: Recording, process: str, source: str) -> list[int]:
    """The numbered steps that have a row."""
    return [step for step in recording.columns(process, source).get("step", []) if step is not None]


def counted(recording: Recording, process: str) -> int | None:
    """The number of steps a process says it made, when it ended."""
    (end,) = (m for m in recording.marks if m.what == "end" and m.process == process)
    return end.at.step
