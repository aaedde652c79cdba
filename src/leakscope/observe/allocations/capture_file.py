"""Where memray writes while a native window is open, out of the program's way."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NAME = "leakscope-native"
_LOWEST_DESCRIPTOR = 200


class CaptureFile:
    """Where memray writes, at the end of a window: in memory, or where that cannot be, in a hidden
    file of the recording. In memory there is no full disk, which memray would tell stderr of, and
    nothing is left behind by a SIGKILL. It is 2 to 100 KB."""

    def __init__(self, directory: str) -> None:
        self._descriptor = _open_in_memory()
        self._name: str | None = None
        if self._descriptor is None:
            self._name = os.path.join(directory, f".native-{os.getpid()}.tmp")
        self.path = self._name or f"/proc/self/fd/{self._descriptor}"
        self._memrays: int | None = None

    def keep_from_children(self) -> None:
        """memray opens its descriptors without close-on-exec."""
        for number in _descriptors():
            with suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{number}")
                if self._is_this(number):
                    self._memrays = number
                elif target != f"/proc/{os.getpid()}/status":
                    continue
                os.set_inheritable(number, False)

    @contextmanager
    def where_memray_writes(self) -> Iterator[None]:
        """Programs that become daemons close every descriptor, and the number memray has may be
        that of a file of theirs by now. Such a file stands aside while memray writes."""
        number = self._memrays
        if number is None or self._is_this(number):
            yield
            return
        theirs = _dup(number)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nowhere, number, inheritable=False)
        os.close(nowhere)
        try:
            yield
        finally:
            if theirs is not None:
                os.dup2(theirs[0], number, inheritable=theirs[1])
                os.close(theirs[0])

    def remove(self) -> None:
        with suppress(OSError):
            if self._name is not None:
                os.unlink(self._name)
            elif self._descriptor is not None and _is_in_memory(self._descriptor):
                os.close(self._descriptor)

    def _is_this(self, number: int) -> bool:
        """True for memray's descriptor of this file."""
        try:
            ours = os.stat(self.path)
            return number != self._descriptor and os.path.samestat(os.fstat(number), ours)
        except OSError:
            return False


def _open_in_memory() -> int | None:
    try:
        low = os.memfd_create(_NAME)
    except (AttributeError, OSError):  # not Linux, or not allowed
        return None
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    except OSError:
        return low
    os.close(low)
    return high


def _is_in_memory(number: int) -> bool:
    return _NAME in os.readlink(f"/proc/self/fd/{number}")


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []


def _dup(number: int) -> tuple[int, bool] | None:
    """A copy of the descriptor, and whether the original is inherited; None if it is closed."""
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3), os.get_inheritable(number)
    except OSError:
        return None
