"""Where the recording cannot be written, the program does not notice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from running import LEAKSCOPE, PROGRAMS, environment, run_watched, split_stderr

_PAGE = 4096


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount small file systems that can be filled, where this test may."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    done: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(done)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mount is not permitted here")
        done.append(place)
        return place

    yield mount
    for place in done:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(place: Path, pages_left: int) -> Path:
    filler = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    filler.write_bytes(bytes(free - pages_left * _PAGE))
    return filler


@pytest.mark.parametrize("room_returns", [False, True])
def test_full_disk_warns_once(
    room_returns: bool, mounted: Callable[[str], Path], tmp_path: Path
) -> None:
    """Breaks when ENOSPC reaches the program, is said twice, or the report is not made."""
    disk = mounted("size=200k")
    filler = _fill(disk, 3)
    words = [str(PROGRAMS / "full_disk.py"), *([str(filler)] if room_returns else [])]
    done = subprocess.run(
        [*LEAKSCOPE, "run", "--out", str(disk / "rec"), *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    own, said = split_stderr(done.stderr)
    assert (done.returncode, done.stdout, own) == (6, b"done\n", b"")
    assert said.count("could not be written (No space left on device)") == 1, said
    assert "Traceback" not in said
    assert "exited with 6" in said
    if room_returns:
        assert "records of" in said, said  # the loss is counted in the recording itself


def test_folder_that_cannot_be_written_is_said_before_the_start(
    mounted: Callable[[str], Path], tmp_path: Path
) -> None:
    """Breaks when a program runs for hours into a folder that takes nothing."""
    file = tmp_path / "file"
    file.write_text("mine")
    used = tmp_path / "used"
    used.mkdir()
    (used / "thesis.txt").write_text("mine")
    read_only = mounted("size=64k,ro")
    script = tmp_path / "never.py"
    script.write_text("print('started')\n")
    for out, why in (
        (read_only / "x", "Read-only file system"),
        (read_only, "Read-only file system"),
        (Path("/proc/leakscope"), "No such file or directory"),
        (file / "x", "Not a directory"),
        (file, "File exists"),
        (used, "the folder is not empty"),
    ):
        done = subprocess.run(
            [*LEAKSCOPE, "run", "--out", str(out), str(script)],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            check=False,
        )
        lines = done.stderr.decode().splitlines()
        assert (done.returncode, done.stdout) == (2, b""), done
        assert lines[0] == f"leakscope: cannot write to `{out}`"
        assert lines[1] == f"  why   {why}"
        assert lines[-1] == "  see   docs/messages.md#cannot-write"
    assert [path.name for path in used.iterdir()] == ["thesis.txt"]


def test_our_lines_never_land_in_files_of_the_program(tmp_path: Path) -> None:
    """Breaks when a descriptor number that was ours is written to after the program took it."""
    ran = run_watched([PROGRAMS / "closes_everything.py"], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"kept my files\n", b"")
    for number in range(300):
        assert (tmp_path / f"own-{number}").read_bytes() == b"12345 67890 %d" % number
    assert ran.report["steps"] == 351
    rss = [
        value
        for process in ran.recording().pulsed()
        for value in ran.recording().columns(process, "api").get("rss_bytes", [])
    ]
    assert min(value for value in rss if value is not None) > 1 << 20  # and no number of theirs


_VANISH = {
    "deleted": "shutil.rmtree(rec)",
    "moved": "os.rename(rec, rec + '-elsewhere')",
    "header deleted": "os.unlink(rec + '/run.json')",
    "made read-only": "os.chmod(rec, 0o500)",
}


@pytest.mark.parametrize("kind", _VANISH)
def test_recording_that_goes_away_does_not_matter_to_the_program(kind: str, tmp_path: Path) -> None:
    """Breaks when a lost recording changes the program's end or shows a traceback."""
    rec = tmp_path.parent / f"{tmp_path.name}.leakscope" / "rec"
    script = tmp_path / "vanish.py"
    script.write_text(
        "import leakscope, os, shutil, sys\nrec = " + repr(str(rec)) + "\n"
        "for _ in range(10): leakscope.step()\n" + _VANISH[kind] + "\n"
        "for _ in range(10): leakscope.step()\n"
        "if os.fork() == 0:\n    leakscope.step(); os._exit(0)\n"
        "os.wait(); print('done'); sys.exit(6)\n"
    )
    ran = run_watched([script], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr) == (6, b"done\n", b"")
    assert "Traceback" not in ran.said
    if kind != "made read-only":
        assert ran.said.startswith(f"leakscope: `{rec}` is not a recording\n")


def test_report_file_that_cannot_be_written_keeps_report_and_status(tmp_path: Path) -> None:
    """Breaks when a bad --report path costs the report itself or the program's exit code."""
    script = tmp_path / "end.py"
    script.write_text("import sys; sys.exit(6)\n")
    ran = run_watched([script], tmp_path, own=["--report", "/proc/no/report.json"])
    assert ran.status == 6
    assert ran.report["ending"]["exit_code"] == 6
    assert "leakscope: cannot write to `/proc/no/report.json`" in ran.said
    assert "Traceback" not in ran.said


def test_relative_folder_survives_a_change_of_directory(tmp_path: Path) -> None:
    """Breaks when `--out rec` is looked up again where the program has gone since."""
    script = tmp_path / "go.py"
    script.write_text(
        "import os, leakscope\nos.chdir('/')\nfor _ in range(777): leakscope.step()\n"
    )
    done = subprocess.run(
        [*LEAKSCOPE, "run", "--quiet", "--out", "rec", str(script)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"777 steps" in done.stderr
