"""Glimpses in, a terminal that shows them out. Looks at files, never at the program."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import termios
import threading
from contextlib import suppress
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Static

from leakscope import text
from leakscope.follow.follower import Follower
from leakscope.follow.glimpse import Glimpse
from leakscope.follow.panels import PANELS, Draw, headline
from leakscope.record.format import OUTPUT_FILE
from leakscope.render import Style, render

_PAUSE_S = 1.0
_PAUSE = 30
"""The next look may begin when a second, and 30 times the cost of the last one, have passed."""
_LAST_OUTPUT = 64 * 1024
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

HELP = """\
q, Ctrl-C   close the view; the program goes on
r           the whole report, with paths and diffs
o           what the program has printed (leakscope run --live)
?           these keys
Esc         back
Tab         next part; arrows and Page keys scroll it

The view reads the recording and nothing else. Closing it, killing it or \
losing its terminal is nothing that the program notices."""

_HELP_BESIDE = HELP.replace(
    "q, Ctrl-C   close the view; the program goes on",
    "q           close the view; the program goes on and prints here\n"
    "Ctrl-C      interrupts the program, as without the view",
)


class Looked(Message):
    """A new glimpse has been had."""

    def __init__(self, view: Glimpse) -> None:
        super().__init__()
        self.view = view


class Panel(Widget):
    """One part of the view, drawn anew for each glimpse and each size."""

    def __init__(self, draw: Draw, name: str) -> None:
        super().__init__(id=name)
        self._draw = draw
        self._view: Glimpse | None = None

    def show(self, view: Glimpse) -> None:
        self._view = view
        self.refresh(layout=True)

    def render(self) -> Text:
        return self._text(self.size.width, self.size.height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Asked before the panel has its new size, so what it would be then is drawn.
        return len(self._text(width, 0).wrap(self.app.console, max(width, 1)))

    def _text(self, width: int, height: int) -> Text:
        if self._view is None:
            return Text("reading …", "dim")
        return self._draw(self._view, max(width, 20), max(height, 3))


class Page(ModalScreen[None]):
    """A text over the view: the report, the program's output, the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,r,o,question_mark", "dismiss", "back"),
        Binding("q,ctrl+c", "app.quit", "quit", show=False),
    ]

    def __init__(self, title: str, content: Text, *, is_at_end: bool = False) -> None:
        super().__init__()
        self._title = title
        self._content = content
        self._is_at_end = is_at_end

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page") as scroll:
            scroll.border_title = self._title
            yield Static(self._content, id="text")
        yield Footer()

    def on_mount(self) -> None:
        page = self.query_one("#page", VerticalScroll)
        page.focus()
        if self._is_at_end:
            page.call_after_refresh(page.scroll_end, animate=False)


class View(App[None]):
    """The live view of one recording."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as App has it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("r", "report", "report"),
        Binding("o", "output", "output"),
        Binding("question_mark", "help", "keys"),
    ]
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #headline { height: auto; max-height: 8; padding: 0 1; }
    #body { height: 1fr; }
    .-wide #body { layout: horizontal; }
    .-wide .column { width: 1fr; height: 1fr; }
    .-narrow .column { height: auto; }
    .box { border: round ansi_bright_black; border-title-color: ansi_default; padding: 0 1; }
    .box:focus { border: round ansi_cyan; }
    Panel { height: auto; width: 1fr; }
    #history { height: 1fr; }
    #history-box { height: 1fr; min-height: 8; }
    .-narrow #history-box { height: 13; }
    #parts-box { height: auto; }
    #findings-box { height: 2fr; }
    #members-box { height: 1fr; }
    .-narrow #members-box, .-narrow #findings-box { height: auto; }
    Page { background: ansi_default; }
    #page { border: round ansi_cyan; padding: 0 1; background: ansi_default; }
    #text { width: 1fr; }
    """

    def __init__(self, follower: Follower, *, is_beside: bool = False) -> None:
        """Args: is_beside: beside a program in the same terminal, with which it ends."""
        # The terminal's own colours, and with NO_COLOR truly none rather than greys.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.view: Glimpse | None = None
        self._follower = follower
        self._is_beside = is_beside
        self._is_closing = threading.Event()

    def compose(self) -> ComposeResult:
        yield Panel(headline, "headline")
        with VerticalScroll(id="body"):
            for column in (("history", "parts"), ("findings", "members")):
                with Vertical(classes="column"):
                    for name in column:
                        title, draw = PANELS[name]
                        with VerticalScroll(id=f"{name}-box", classes="box") as box:
                            box.border_title = title
                            yield Panel(draw, name)
        yield Footer()

    def on_mount(self) -> None:
        self._listen()
        self.query_one("#body").focus()
        # A daemon: a judgement in progress must not hold up the end of the view.
        threading.Thread(target=self._follow, daemon=True).start()
        self.set_interval(1.0, self._leave_dead_terminal)

    def on_unmount(self) -> None:
        self._is_closing.set()

    def on_looked(self, message: Looked) -> None:
        self.view = message.view
        for panel in self.query(Panel):
            panel.show(message.view)
        if self._is_beside and message.view.is_over:
            self.exit()

    def action_report(self) -> None:
        if self.view is None or self.view.report is None:
            self.bell()
            return
        style = Style(
            width=self.size.width - 6, has_colour=True, recording=self._follower.directory
        )
        self.push_screen(
            Page("report", Text.from_ansi(render(self.view.report, "terminal", style)))
        )

    def action_output(self) -> None:
        said = _printed(self._follower.directory)
        if said is None:
            said = "The program has its own terminal. `leakscope run --live` keeps its output here."
        self.push_screen(Page("output", Text(said), is_at_end=True))

    def action_help(self) -> None:
        self.push_screen(Page("keys", Text(_HELP_BESIDE if self._is_beside else HELP)))

    def _follow(self) -> None:
        """In a thread of its own: looks again and again until nothing changes any more."""
        while not self._is_closing.is_set():
            view = self._follower.look()
            if self._is_closing.is_set():
                return
            self.post_message(Looked(view))
            if self._follower.is_final:
                return
            self._is_closing.wait(max(_PAUSE_S, _PAUSE * self._follower.reading_s))

    def _listen(self) -> None:
        """Signals end the view and give the terminal back as it was."""
        loop = asyncio.get_running_loop()
        with suppress(RuntimeError, ValueError):  # not in the main thread: a test drives it
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._hang_up)
            if self._is_beside:
                # The terminal sends these to all; they are meant for the program.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGQUIT, signal.SIG_IGN)

    def _hang_up(self) -> None:
        self._leave_dead_terminal()
        self.exit()

    def _leave_dead_terminal(self) -> None:
        """A terminal that was closed cannot be given back, and reading it would never wait."""
        if not self.is_headless and not has_terminal(0):
            os._exit(128 + signal.SIGHUP)


def has_terminal(descriptor: int) -> bool:
    """True if a terminal is there, with somebody at the other end."""
    try:
        termios.tcgetattr(descriptor)
    except (termios.error, OSError):
        return False
    return True


def _printed(directory: str) -> str | None:
    """The end of what the program printed, if the view keeps it."""
    try:
        with open(os.path.join(directory, OUTPUT_FILE), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - _LAST_OUTPUT, 0))
            said = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    return "\n".join(map(_line, said.split("\n"))) if said else "nothing yet"


def _line(printed: str) -> str:
    """A line as it stands at last: a progress bar returns to its start again and again."""
    return text.clean(_COLOURS.sub("", printed).rstrip("\r").rpartition("\r")[2])
