"""A callback for Keras: `model.fit(…, callbacks=[leakscope.keras.LeakScope()])`.

For programs that are not started by `leakscope run`. Imports Keras, so it is imported by name and
never by `import leakscope`.
"""

from __future__ import annotations

import os
from typing import Any

from keras.callbacks import Callback

import leakscope
from leakscope import errors
from leakscope.model import Report


class LeakScope(Callback):
    """Watches this process from the first `fit` on, over all fits that get it.

    Batches are counted as they are under `leakscope run`. Under that command, the run's own
    recording is used and this adds nothing.
    """

    def __init__(self, out: str | os.PathLike[str] | None = None) -> None:
        """`out` is the folder of the recording; by default a new one under `.leakscope/`."""
        super().__init__()
        self._out = out
        self._watch: leakscope.Watch | None = None

    @property
    def directory(self) -> str | None:
        """Folder of the recording, once there is one."""
        return self._watch.directory if self._watch is not None else None

    def set_model(self, model: Any) -> None:
        """Keeps none: a callback that is kept would keep its model."""

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        if self._watch is None:
            self._watch = leakscope.watch(self._out)
            self._watch.__enter__()

    def report(self) -> Report:
        """What can be said so far; final after `close()`."""
        if self._watch is None:
            raise errors.nothing_watched()
        return self._watch.report()

    def close(self) -> None:
        """Stop watching and take every hook out again. The end of the program does it too."""
        if self._watch is not None:
            self._watch.__exit__(None, None, None)
