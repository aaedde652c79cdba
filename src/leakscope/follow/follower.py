"""A folder in, glimpses out: reads what is new, and judges when that is due."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from leakscope.follow.glimpse import Glimpse, Judged, glimpse, main_end
from leakscope.follow.history import History
from leakscope.follow.pace import Pace
from leakscope.model import Report
from leakscope.record.format import SUFFIX
from leakscope.record.reader import Reader, Recording

Analyse = Callable[[Recording], Report]


class Follower:
    """Follows one recording. All its work is done in the thread that calls `look`."""

    def __init__(self, directory: str, analyse: Analyse | None = None) -> None:
        self.directory = directory
        self._reader = Reader(directory)
        self._history = History()
        self._pace = Pace()
        self._analyse = analyse or _analyse
        self._report: Report | None = None
        self._judged_s = 0.0
        self._judged_bytes = -1
        self._is_final = False
        self._trouble = ""
        self.reading_s = 0.0
        """What reading cost at the last look, without judging."""

    def look(self) -> Glimpse:
        """What is known now; the first look reads everything that was written before it."""
        recording = self._reader.recording
        began_s = time.thread_time()
        try:
            recording = self._reader.poll()
            self._history.follow(recording)
        except OSError as error:
            self._trouble = f"the recording cannot be read: {error.strerror or error}"
            self.reading_s = time.thread_time() - began_s
        else:
            self.reading_s = time.thread_time() - began_s
            self._judge(recording)
        now_s = time.time()
        return glimpse(
            recording,
            self._history,
            Judged(self._report, max(time.monotonic() - self._judged_s, 0.0), self._trouble),
            age_s=max(now_s - recording.run.started_wall_ns / 1e9, 0.0),
            silent_s=max(now_s - self._written_s(), 0.0),
        )

    @property
    def is_final(self) -> bool:
        """True when the run is over and judged to the end: nothing will change any more."""
        return self._is_final

    def _judge(self, recording: Recording) -> None:
        is_over = main_end(recording) is not None
        now_s = time.monotonic()
        is_new = recording.size_bytes != self._judged_bytes
        if self._is_final or not is_new or not (is_over or self._pace.is_due(now_s)):
            self._is_final = self._is_final or (is_over and not is_new)
            return
        began_s = time.thread_time()
        try:
            self._report = self._analyse(recording)
            self._trouble = ""
        except Exception as error:  # noqa: BLE001 - the rest of the view is still worth seeing
            self._trouble = f"this run could not be judged: {type(error).__name__}: {error}"
        self._judged_s = time.monotonic()
        self._judged_bytes = recording.size_bytes
        age_s = time.time() - recording.run.started_wall_ns / 1e9
        self._pace.judged(self._judged_s, cost_s=time.thread_time() - began_s, age_s=age_s)

    def _written_s(self) -> float:
        """When a file of the recording was last written to."""
        try:
            with os.scandir(self.directory) as files:
                ours = [file for file in files if file.name.endswith(SUFFIX)]
                return max((file.stat().st_mtime for file in ours), default=0.0)
        except OSError:
            return 0.0


def _analyse(recording: Recording) -> Report:
    from leakscope.analysis import analyse  # numpy and scipy: a second, after the first glimpse

    return analyse(recording)
