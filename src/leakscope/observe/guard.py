"""The one place in the program where failure is caught: it becomes a gap, never an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakscope.model import Gap

_FAILURES_BEFORE_RETIRING = 3


def guarded(
    event: Callable[..., Any], name: str, report: Callable[[Gap], object]
) -> Callable[..., None]:
    """The same event, which never raises; three failures in a row and it is no longer called."""
    failures = 0

    def call(*args: Any) -> None:
        nonlocal failures
        if failures >= _FAILURES_BEFORE_RETIRING:
            return
        try:
            event(*args)
        except Exception as error:  # noqa: BLE001 - a probe must never break the program it watches
            failures += 1
            _tell(report, name, error, failures == _FAILURES_BEFORE_RETIRING)
        else:
            failures = 0

    return call


def _tell(report: Callable[[Gap], object], name: str, error: Exception, is_last: bool) -> None:
    try:
        why = f"{type(error).__name__}: {error}" + (" (retired)" if is_last else "")
        report(Gap(what=name, why=why))
    except Exception:  # noqa: BLE001 - nobody is left to tell
        return
