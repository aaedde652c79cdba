"""Record in, one line on disk out. Never raises into the program it serves."""

from __future__ import annotations

import fcntl
import os

from leakscope.model import Gap, Record
from leakscope.record.format import encode

# High enough that a program which counts on getting small numbers still gets them.
_LOWEST_DESCRIPTOR = 200


def open_high(path: str, flags: int) -> int:
    """A descriptor out of the program's way, or a low one where the limit leaves no other."""
    low = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    except OSError:
        return low
    os.close(low)
    return high


class Writer:
    """Appends records to one file with one `write` each, so a SIGKILL tears at most the last line.

    A failed or short write (a full disk, a quota) loses that record and no other: the next
    one starts with a newline, and the first that succeeds is followed by a gap with the count.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lost_records = 0
        self.last_error: str | None = None
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._is_torn = False
        self._unreported = 0

    def append(self, record: Record) -> bool:
        """True if the record is on its way to disk, whole."""
        try:
            line = encode(record) + b"\n"
            descriptor = self._open_descriptor()
            if self._is_torn:
                line = b"\n" + line
            written = os.write(descriptor, line)
        except OSError as error:
            return self._lose(error.strerror or "write failed")
        except ValueError as error:  # a number or a text that JSON cannot hold
            return self._lose(str(error))
        if written != len(line):
            self._is_torn = True
            return self._lose("short write")
        self._is_torn = False
        if self._unreported:
            lost, self._unreported = self._unreported, 0
            why = f"the recording could not be written: {self.last_error}"
            self.append(Gap(what=f"{lost} records of {os.path.basename(self.path)}", why=why))
        return True

    def close(self) -> None:
        if self._is_ours():
            os.close(self._descriptor)
        self._descriptor = -1

    def _lose(self, why: str) -> bool:
        self.lost_records += 1
        self._unreported += 1
        self.last_error = why
        return False

    def _open_descriptor(self) -> int:
        # Programs that become daemons close every descriptor; the number may then belong to
        # a file of theirs. fstat (1 µs a block) is what keeps our lines out of it.
        if self._is_ours():
            return self._descriptor
        self._descriptor = open_high(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)
        # Whoever wrote to it before us may have been stopped in the middle of a line.
        self._is_torn = status.st_size > 0
        return self._descriptor

    def _is_ours(self) -> bool:
        if self._descriptor < 0:
            return False
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity
