"""What has been done so far, in a file: a bisect that was stopped goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from leakscope import errors
from leakscope.bisect.factors import Factor
from leakscope.bisect.trial import Subject
from leakscope.model import LeftOut, Trial

STATE_FILE = "bisect.json"


class State(msgspec.Struct):
    schema: int
    command: tuple[str, ...]
    """Without secrets: it serves to recognise the program, not to run it."""
    settings: dict[str, str]
    subject: Subject | None = None
    factors: tuple[Factor, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    kept_by: str = ""
    trials: list[Trial] = msgspec.field(default_factory=list)
    is_done: bool = False
    running: str = ""
    """The run that was begun last, as `pid-startticks`: it outlives a bisect that is killed."""

    def runs_of(self, factor: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.factor == factor]


def read_state(folder: str) -> State | None:
    """The state a folder holds; None if it is empty or not there."""
    path = os.path.join(folder, STATE_FILE)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=State)
    except FileNotFoundError:
        if os.path.isdir(folder) and os.listdir(folder):
            raise errors.cannot_write(folder, "the folder is not empty, and no bisect's") from None
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise errors.corrupt_recording(path, str(error)) from None


def write_state(folder: str, state: State) -> None:
    """All of it or none, so that a kill leaves the last one whole."""
    path = os.path.join(folder, STATE_FILE)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(path + ".part", "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
        os.replace(path + ".part", path)
    except OSError as error:
        raise errors.cannot_write(folder, error.strerror or str(error)) from None


def is_same(state: State, command: Sequence[str], settings: dict[str, str]) -> bool:
    return state.command == tuple(command) and state.settings == settings
