"""Which recording `leakscope top` and its sisters mean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from leakscope.cli.recordings import find_recording
from leakscope.errors import LeakscopeError
from leakscope.inject import RUN_DIR
from leakscope.record.format import file_of, name_process, write_run
from leakscope.record.reader import read_run
from make import Maker


def _made(directory: Path, started_ns: int, *command: str) -> str:
    Maker(directory)
    run = replace(read_run(str(directory)), started_wall_ns=started_ns, command=command)
    write_run(str(directory), run)
    return str(directory)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_newest_a_script_or_a_folder(here: Path) -> None:
    """Breaks when the newest is told by its name, or a broken neighbour hides the others."""
    _made(here / ".leakscope" / "z", 1, "python", "jobs/train.py")
    _made(here / ".leakscope" / "a", 3, "python", "serve.py")
    _made(here / ".leakscope" / "b", 2, "python", "jobs/train.py")
    (here / ".leakscope" / "broken").mkdir()
    (here / ".leakscope" / "broken" / "run.json").write_text("{")
    assert find_recording(None) == ".leakscope/a"
    assert find_recording("train.py") == ".leakscope/b"
    assert find_recording(".leakscope/z") == ".leakscope/z"
    assert find_recording("other.py") == "other.py"  # refused by whoever reads it


def test_nothing_here(here: Path) -> None:
    with pytest.raises(LeakscopeError) as caught:
        find_recording(None)
    assert caught.value.slug == "no-recording"


def _sleeper(cwd: Path, **env: str) -> subprocess.Popen[bytes]:
    code = "import sys; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=os.environ | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_process_leads_to_its_recording(here: Path) -> None:
    by_environment = _made(here / "somewhere", 1, "python")
    inside = Path(_made(here / ".leakscope" / "inside", 1, "python"))
    watched = _sleeper(here, **{RUN_DIR: by_environment})
    other = _sleeper(here)
    try:
        assert find_recording(str(watched.pid)) == by_environment
        with pytest.raises(LeakscopeError) as caught:
            find_recording(str(other.pid))
        assert caught.value.slug == "not-watched"
        (inside / file_of(name_process(other.pid))).touch()
        assert os.path.samefile(find_recording(str(other.pid)), inside)
    finally:
        for process in (watched, other):
            process.communicate()
    with pytest.raises(LeakscopeError, match="is not watched") as caught:
        find_recording(str(watched.pid))
    assert caught.value.why == "there is no such process"
