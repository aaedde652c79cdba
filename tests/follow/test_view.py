"""The view itself, driven key by key, on recordings made for the purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import golden
import make_report
from leakscope.follow.follower import Follower
from leakscope.follow.panels import plain
from leakscope.follow.screen import Page, Panel, View
from leakscope.model import Report
from leakscope.record.format import OUTPUT_FILE
from leakscope.record.reader import Recording
from make import KIB, MIB, Maker, flat, line, recording

Drive = Callable[[View, Pilot[None]], Awaitable[None]]


def _leaking(recording: Recording) -> Report:
    return make_report.leaking()


def _made(directory: Path) -> Maker:
    made = recording(directory).steps(412, in_use=line(16 * KIB), rss=line(20 * KIB, 800 * MIB))
    made.roles(3, parameter=24 * MIB, gradient=24 * MIB, optimizer_state=48 * MIB)
    return made


def _finished(directory: Path) -> Maker:
    made = _made(directory)
    made.process(2, kind="worker", parent=1, name="worker 0")
    return made.ended(412, pid=2, code=None, signal=15).ended(412)


def _drive(follower: Follower, size: tuple[int, int], drive: Drive) -> None:
    async def run() -> None:
        view = View(follower)
        async with view.run_test(size=size) as pilot:
            for _ in range(200):
                await pilot.pause(0.02)
                if view.view is not None:
                    break
            await drive(view, pilot)

    asyncio.run(run())


def _shown(view: View, name: str) -> str:
    return view.query_one(f"#{name}", Panel).render().plain


@pytest.mark.parametrize(("width", "kind"), [(120, "-wide"), (70, "-narrow")])
def test_the_layout_follows_the_width(width: int, kind: str, tmp_path: Path) -> None:
    """Breaks when a narrow terminal gets two columns, or a part has no room."""

    async def drive(view: View, pilot: Pilot[None]) -> None:
        assert view.screen.has_class(kind)
        left, right = view.query_one("#history-box"), view.query_one("#findings-box")
        assert (left.region.x == right.region.x) == (kind == "-narrow")
        assert left.region.height >= 8
        other = 70 if width == 120 else 120
        await pilot.resize_terminal(other, 40)
        assert not view.screen.has_class(kind)

    _finished(tmp_path)
    _drive(Follower(str(tmp_path), _leaking), (width, 40), drive)


def test_every_part_says_what_is_known(tmp_path: Path) -> None:
    async def drive(view: View, pilot: Pilot[None]) -> None:
        assert "LEAK  " in _shown(view, "headline")
        assert "ended with 0 · 4.1 s" in _shown(view, "headline")
        assert "in use 106 MiB  +6.4 MiB so far" in _shown(view, "history")
        assert "step 412" in _shown(view, "history")
        assert "optimizer state" in _shown(view, "parts")
        assert "kept by" in _shown(view, "findings")
        assert "killed by signal 15 (SIGTERM)" in _shown(view, "members")

    _finished(tmp_path)
    _drive(Follower(str(tmp_path), _leaking), (120, 40), drive)


def test_keys_open_and_close_pages(tmp_path: Path) -> None:
    async def drive(view: View, pilot: Pilot[None]) -> None:
        for key, title, words in (
            ("r", "report", "LS101"),
            ("o", "output", "epoch 2"),
            ("question_mark", "keys", "close the view"),
        ):
            await pilot.press(key)
            page = view.screen
            assert isinstance(page, Page), key
            assert page.query_one("#page").border_title == title
            said = page.query_one("#text").render()
            assert words in str(said)
            assert "\x1b" not in str(said)
            await pilot.press("escape")
            assert not isinstance(view.screen, Page)
        await pilot.press("r", "q")
        assert not view.is_running

    _finished(tmp_path)
    printed = b"epoch 1\x1b[31m red\x1b[0m \x1b]0;title\x07\nepoch 2: 0 %\repoch 2: 99 %\n"
    (tmp_path / OUTPUT_FILE).write_bytes(printed)
    _drive(Follower(str(tmp_path), _leaking), (100, 40), drive)


def test_findings_appear_while_the_run_goes_on(tmp_path: Path) -> None:
    """Breaks when the view shows what was known when it was opened, and no more."""
    reports = iter([make_report.unknown(), make_report.leaking(), make_report.leaking()])
    made = _made(tmp_path)

    async def drive(view: View, pilot: Pilot[None]) -> None:
        assert "UNKNOWN" in _shown(view, "headline")
        assert _shown(view, "findings") == "none yet"
        made.ended(412)
        for _ in range(500):
            await pilot.pause(0.02)
            if "LEAK" in _shown(view, "headline"):
                break
        assert "LS101" in _shown(view, "findings")

    _drive(Follower(str(tmp_path), lambda _: next(reports)), (120, 40), drive)


def test_before_anything_is_known(tmp_path: Path) -> None:
    async def drive(view: View, pilot: Pilot[None]) -> None:
        assert _shown(view, "history") == "nothing read yet"
        assert _shown(view, "members") == "none seen yet"
        await pilot.press("r")  # there is no report to show: nothing happens
        assert not isinstance(view.screen, Page)

    Maker(tmp_path)

    def never(recording: Recording) -> Report:
        raise ValueError("too early")

    _drive(Follower(str(tmp_path), never), (80, 24), drive)


@pytest.mark.parametrize("width", [120, 60])
def test_without_a_terminal_it_reads_as_agreed(
    width: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    _finished(tmp_path)
    view = Follower(str(tmp_path), _leaking).look()
    golden.check(pytestconfig, f"follow/leaking.{width}.txt", plain(view, width))


def test_a_program_of_which_only_the_outside_is_seen(tmp_path: Path) -> None:
    async def drive(view: View, pilot: Pilot[None]) -> None:
        assert "from outside only" in _shown(view, "parts")
        assert "resident 30 MiB" in _shown(view, "history")
        assert "* seen from outside only" in _shown(view, "members")

    made = Maker(tmp_path).process(followed=False)
    made.resident(range(50), flat(30 * MIB)).ended(50)
    _drive(Follower(str(tmp_path), lambda _: make_report.unknown()), (120, 40), drive)
