"""Files are changed only if they are what was run, and the user's own never by a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.errors import LeakscopeError
from leakscope.fix.edits import Change, Span, Wrap
from leakscope.fix.files import changed_files, write_files
from leakscope.fix.workspace import apply_changes, copy_program

TEXT = "total = 0\nfor loss in losses:\n    total += loss\n"
EDIT = Wrap(Span(3, 13, 3, 17), ".detach()")
FIXED = TEXT.replace("+= loss", "+= loss.detach()")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    path = folder / "train.py"
    path.write_text(TEXT)
    return path


def change(path: Path) -> dict[str, Change]:
    return {str(path): Change(str(path), (EDIT,))}


def test_a_file_is_changed_in_place_with_its_rights(script: Path) -> None:
    """Breaks when a changed script is no longer executable, or more than the edit changes."""
    script.chmod(0o755)
    write_files(changed_files(change(script), {str(script): TEXT}))
    assert script.read_text() == FIXED
    assert script.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


@pytest.mark.parametrize("cookie", ["latin-1", "utf-8"])
def test_line_ends_and_encodings_stay(script: Path, cookie: str) -> None:
    """Breaks when CRLF or another encoding is written anew as something else."""
    text = f"# -*- coding: {cookie} -*-\r\n# ol\xe9\r\n" + TEXT.replace("\n", "\r\n")
    script.write_bytes(text.encode(cookie))
    moved = Wrap(Span(5, 13, 5, 17), ".detach()")
    recorded = text.replace("\r\n", "\n")
    files = changed_files({str(script): Change(str(script), (moved,))}, {str(script): recorded})
    wanted = text.replace("+= loss", "+= loss.detach()").encode(cookie)
    assert files == {str(script): wanted}


@pytest.mark.parametrize(
    "content", [b"x = 1\n", b"\xff\xfe\x00", TEXT.replace("    ", "\t").encode(), None]
)
def test_another_file_is_refused(script: Path, content: bytes | None) -> None:
    """Breaks when a file that is not the one that ran is changed, or its loss is a traceback."""
    if content is None:
        script.unlink()
    else:
        script.write_bytes(content)
    with pytest.raises(LeakscopeError) as refused:
        changed_files(change(script), {str(script): TEXT})
    assert refused.value.slug == "source-changed"
    assert str(script) in str(refused.value)


def test_a_copy_is_changed_and_the_program_is_not(script: Path, tmp_path: Path) -> None:
    """Breaks when verifying a change writes to the user's files, or copies what it should not."""
    (script.parent / ".git").mkdir()
    (script.parent / ".git" / "HEAD").write_text("ref")
    (script.parent / "data").mkdir()
    (script.parent / "data" / "a.txt").write_text("a")
    (script.parent / "venv").mkdir()
    out = tmp_path / "out"
    workspace = copy_program(str(script.parent), str(out), change(script))
    apply_changes(workspace, change(script), {str(script): TEXT})
    copy = Path(workspace.folder)
    assert (copy / "train.py").read_text() == FIXED
    assert script.read_text() == TEXT
    assert (copy / "data" / "a.txt").read_text() == "a"
    assert not (copy / ".git").exists()
    assert (copy / "venv").is_symlink()
    words = workspace.words(("python", str(script), "--out", "data/a.txt"), str(script.parent))
    assert words == ("python", str(copy / "train.py"), "--out", "data/a.txt")


def test_large_data_is_linked(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a data set is copied for a check of one line, or a link goes unsaid."""
    monkeypatch.setattr("leakscope.fix.workspace._LARGE_BYTES", 10)
    (script.parent / "data.bin").write_bytes(b"x" * 11)
    workspace = copy_program(str(script.parent), str(tmp_path / "out"), {})
    assert (Path(workspace.folder) / "data.bin").is_symlink()
    assert str(script.parent / "data.bin") in workspace.linked


def test_a_file_elsewhere_and_a_tree_too_large_are_refused(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when the copy runs without the change, or a home folder is copied."""
    elsewhere = tmp_path / "lib.py"
    with pytest.raises(LeakscopeError) as refused:
        copy_program(str(script.parent), str(tmp_path / "a"), change(elsewhere))
    assert refused.value.slug == "cannot-copy"
    monkeypatch.setattr("leakscope.fix.workspace._MOST_BYTES", 10)
    with pytest.raises(LeakscopeError) as refused:
        copy_program(str(script.parent), str(tmp_path / "b"), {})
    assert refused.value.slug == "cannot-copy"
