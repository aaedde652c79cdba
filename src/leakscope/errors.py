"""What the user can act on: what happened, why, what to do, and where to read more.

Anything that is not a `LeakscopeError` is a bug and shows a traceback. One maker per
message keeps the words in one file; every slug has a paragraph in docs/messages.md.
"""

from __future__ import annotations

from leakscope import text

SLUGS = (
    "bad-option",
    "cannot-copy",
    "cannot-reach",
    "cannot-write",
    "command-not-found",
    "corrupt-recording",
    "did-not-grow",
    "hidden-words",
    "lines-not-watched",
    "missing-extra",
    "no-heap-snapshot",
    "no-lines",
    "no-program",
    "no-recording",
    "no-safe-fix",
    "no-such-path",
    "no-such-process",
    "no-such-rule",
    "not-a-recording",
    "not-watched",
    "nothing-watched",
    "other-bisect",
    "recording-too-new",
    "run-failed",
    "source-changed",
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


def no_program() -> LeakscopeError:
    return LeakscopeError(
        "there is no program to watch",
        why="nothing follows the options",
        do="name a script, -m and a module, or a command, for example\nleakscope run train.py",
        slug="no-program",
    )


def command_not_found(name: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no command {_quoted(name)}",
        why="it is neither a .py file, nor a directory with __main__.py, "
        "nor an executable on the PATH",
        do="check the spelling, or give the full path of the program",
        slug="command-not-found",
    )


def no_heap_snapshot(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(path)} has no heap snapshot",
        why="the program ended before one was due, or its memory did not grow",
        do="run the program longer, or with a larger --budget",
        slug="no-heap-snapshot",
    )


def not_a_recording(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(path)} is not a recording",
        why="a recording is a directory that contains run.json, and none is there",
        do="name the directory that `leakscope run` announced, usually .leakscope/<run>",
        slug="not-a-recording",
    )


def no_recording(folder: str) -> LeakscopeError:
    return LeakscopeError(
        "there is no recording here",
        why=f"{_quoted(folder)} holds none",
        do="name the folder of a recording or the number of a process, or make a recording:\n"
        "leakscope run train.py",
        slug="no-recording",
    )


def not_watched(pid: int, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"process {pid} is not watched",
        why=text.clean(detail),
        do="watch it from outside, or start the program under leakscope:\n"
        f"leakscope attach {pid}\nleakscope run train.py",
        slug="not-watched",
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


def nothing_watched() -> LeakscopeError:
    return LeakscopeError(
        "there is nothing to report on yet",
        why="the callback has not been given to fit(), or fit() has not begun",
        do="call model.fit(…, callbacks=[callback]) first",
        slug="nothing-watched",
    )


def cannot_write(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"cannot write to {_quoted(path)}",
        why=text.clean(detail),
        do="choose another place with --out DIR for the recording, or -o FILE for the report",
        slug="cannot-write",
    )


def cannot_reach(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(path)} cannot be reached",
        why=text.clean(detail),
        do="check the address; places such as s3:// need the package of fsspec for them (s3fs)",
        slug="cannot-reach",
    )


def missing_extra(package: str, extra: str, purpose: str) -> LeakscopeError:
    return LeakscopeError(
        f"{package} is not installed",
        why=f"{purpose} needs it, and leakscope does without it otherwise",
        do=f"pip install 'leakscope[{extra}]'",
        slug="missing-extra",
    )


def unknown_format(name: str, known: tuple[str, ...]) -> LeakscopeError:
    return LeakscopeError(
        f"there is no report format {_quoted(name)}",
        why=f"the formats are {', '.join(known)}",
        do="choose one of them",
        slug="unknown-format",
    )


def no_such_path(path: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no file or folder {_quoted(path)}",
        why="`leakscope lint` reads files and folders that exist",
        do="check the spelling; paths are taken from the folder you are in",
        slug="no-such-path",
    )


def no_such_process(word: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no process {_quoted(word)} to watch",
        why="no process of this number runs here, or it is not ours to read",
        do="look for its number with `pgrep -af python`",
        slug="no-such-process",
    )


def no_such_rule(name: str) -> LeakscopeError:
    return LeakscopeError(
        f"there is no rule {_quoted(name)}",
        why="rules have numbers such as LS101, and names such as kept-with-graph",
        do="`leakscope explain` lists all of them",
        slug="no-such-rule",
    )


def no_safe_fix(run: str) -> LeakscopeError:
    return LeakscopeError(
        f"no finding of {_quoted(run)} has a change that is certain to be safe",
        why="what keeps the memory may be needed elsewhere, or its line was not found",
        do=f"read what each finding advises:\nleakscope report {_typed(run)}",
        slug="no-safe-fix",
    )


def source_changed(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(path)} is left as it is",
        why=text.clean(detail),
        do="record the program as it is now, and ask again:\nleakscope run …",
        slug="source-changed",
    )


def did_not_grow(run: str, verdict: str) -> LeakscopeError:
    return LeakscopeError(
        f"the run {_quoted(run)} did not grow",
        why=f"its verdict is {text.clean(verdict)}, so there is nothing that could be gone",
        do="name the recording of a run that leaked: --before RUN",
        slug="did-not-grow",
    )


def hidden_words(run: str) -> LeakscopeError:
    return LeakscopeError(
        f"the command of {_quoted(run)} cannot be run again as it is recorded",
        why="it had words that look like secrets, and those are not recorded",
        do="give the whole command:\n"
        f"leakscope verify --before {_typed(run)} -- train.py --token …",
        slug="hidden-words",
    )


def other_bisect(folder: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(folder)} holds the bisect of another command",
        why="the program, its arguments, an option or the working directory is not the same",
        do="choose another folder with --out DIR, or begin anew with --fresh",
        slug="other-bisect",
    )


def run_failed(said: str) -> LeakscopeError:
    last = said.strip().rpartition("\n")[2]
    return LeakscopeError(
        "the program left no report",
        why=f"the last it said is: {last}" if last else "it said nothing",
        do="make it run under leakscope by itself first:\nleakscope run train.py",
        slug="run-failed",
    )


def cannot_copy(path: str, detail: str) -> LeakscopeError:
    return LeakscopeError(
        f"the program in {_quoted(path)} cannot be run from a copy",
        why=text.clean(detail),
        do="apply the changes and run the program itself:\n"
        "leakscope fix RUN --write\nleakscope verify --before RUN",
        slug="cannot-copy",
    )


def no_lines(name: str) -> LeakscopeError:
    return LeakscopeError(
        f"{_quoted(name)} has no lines that could be watched",
        why="it is not a function written in Python",
        do="name the function that calls it",
        slug="no-lines",
    )


def lines_not_watched(name: str) -> LeakscopeError:
    return LeakscopeError(
        f"the lines of {_quoted(name)} are not watched",
        why="only functions with @leakscope.lines have a table here",
        do="decorate it, or watch it for a while:\nwith leakscope.lines.of(function) as seen:",
        slug="lines-not-watched",
    )


def bad_option(option: str, value: str, wanted: str, example: str) -> LeakscopeError:
    """`bad_option("--budget", "lots", "a share up to 100 %", "--budget 1%")`."""
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
