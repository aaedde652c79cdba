"""What the user can act on: what happened, why, what to do, and where to read more.

Anything that is not a `LeakscopeError` is a bug and shows a traceback. One maker per
message keeps the words in one file; every slug has a paragraph in docs/messages.md.
"""

from __future__ import annotations

from leakscope import text

SLUGS = (
    "bad-option",
    "cannot-write",
    "command-not-found",
    "corrupt-recording",
    "no-main",
    "no-steps",
    "not-a-recording",
    "recording-too-new",
    "script-not-found",
    "unknown-format",
)


class LeakscopeError(Exception):
    """Something the user can act on. Anything else is a bug and shows a traceback."""

    exit_code = 2

    def __init__(self, what: str, *, why: str, do: str, slug: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.do = do
        """What to type or change; each line of it becomes a line of the message."""
        self.slug = slug

    def __str__(self) -> str:
        return "\n".join(
            (
                f"leakscope: {text.clean(self.what)}",
                _labelled("why", self.why),
                _labelled("do", self.do),
                _labelled("see", f"docs/messages.md#{self.slug}"),
            )
        )


def script_not_found(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no script {_quoted(path)}",
        why="a first word that ends in .py is taken as a Python script, "
        "and this file does not exist",
        do="check the path, relative to the directory you are in",
        slug="script-not-found",
    )


def no_main(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"the directory {_quoted(path)} cannot be run",
        why="it has no __main__.py, the file Python starts in a directory",
        do=f"name the script inside it, for example\nleakscope run {_typed(path)}/train.py",
        slug="no-main",
    )


def command_not_found(name: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no command {_quoted(name)}",
        why="it is neither a .py file, nor a directory with __main__.py, "
        "nor an executable on the PATH",
        do="check the spelling, or give the full path of the program",
        slug="command-not-found",
    )


def not_a_recording(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(path)} is not a recording",
        why="a recording is a directory that contains run.json, and none is there",
        do="name the directory that `leakscope run` announced, usually .leakscope/<run>",
        slug="not-a-recording",
    )


def corrupt_recording(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"the recording {_quoted(path)} cannot be read",
        why=text.clean(detail),
        do="check that the whole directory was copied; otherwise record the run again",
        slug="corrupt-recording",
    )


def recording_too_new(path: str, found: int, understood: int) -> LeakscopeError:
    return LeakscopeError(
        f"the recording {_quoted(path)} was made by a newer leakscope",
        why=f"it has format {found}, and this version reads formats up to {understood}",
        do="update leakscope here: pip install --upgrade leakscope",
        slug="recording-too-new",
    )


def no_steps(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"the recording {_quoted(path)} has no steps",
        why="the program ended before leakscope saw an optimizer step, a forward pass, "
        "a batch or a tick of the clock",
        do="run it for longer, or call leakscope.step() once in each round of your loop",
        slug="no-steps",
    )


def cannot_write(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"cannot write to {_quoted(path)}",
        why=text.clean(detail),
        do="choose another place with --out DIR for the recording, or -o FILE for the report",
        slug="cannot-write",
    )


def unknown_format(name: str, known: tuple[str, ...]) -> LeakscopeError:
    return LeakscopeError(
        f"there is no report format {_quoted(name)}",
        why=f"the formats are {', '.join(known)}",
        do=f"choose one of them: leakscope report RUN --format {known[0] if known else 'json'}",
        slug="unknown-format",
    )


def bad_option(option: str, value: str, wanted: str, example: str) -> LeakscopeError:
    """`bad_option("--budget", "lots", "a share between 0 and 20 %", "--budget 1%")`."""
    return LeakscopeError(
        f"{text.clean(option)} does not take {_quoted(value)}",
        why=f"it takes {text.clean(wanted)}",
        do=f"for example {text.clean(example)}",
        slug="bad-option",
    )


def _quoted(word: str) -> str:
    return f"`{text.clean(word)}`"


def _typed(word: str) -> str:
    return text.command_line((word.rstrip("/") or "/",))


def _labelled(label: str, words: str) -> str:
    lines = [text.clean(line) for line in words.split("\n")]
    return "\n".join(
        [f"  {label:<5} {lines[0]}", *(f"        {line}" for line in lines[1:])],
    )
