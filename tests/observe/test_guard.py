"""Nothing of ours raises into the program."""

from __future__ import annotations

import pytest

from leakscope.model import Gap
from leakscope.observe.guard import guarded


def test_failure_becomes_a_gap_and_the_third_in_a_row_retires() -> None:
    """Breaks when a probe raises, is called for ever, or retires after single failures."""
    calls: list[bool] = []
    gaps: list[Gap] = []

    def probe(fails: bool) -> None:
        calls.append(fails)
        if fails:
            raise ValueError("no such counter")

    event = guarded(probe, "a probe", gaps.append)
    for fails in (True, True, False, True, True, True, True, False):
        event(fails)
    assert calls == [True, True, False, True, True, True]
    assert [gap.what for gap in gaps] == ["a probe"] * 5
    assert [gap.why.endswith("(retired)") for gap in gaps] == [False] * 4 + [True]
    assert gaps[0].why == "ValueError: no such counter"


def test_nobody_to_tell_is_fine_too() -> None:
    """Breaks when a full disk while telling of a failure raises in the program."""

    def broken(*args: object) -> None:
        raise OSError

    guarded(broken, "x", broken)(1, 2)


def test_error_that_cannot_be_printed() -> None:
    """Breaks when `str(error)` itself raises."""

    class RudeError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def rude() -> None:
        raise RudeError

    guarded(rude, "x", lambda gap: None)()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_meant_for_the_program_passes(kind: type[BaseException]) -> None:
    """Breaks when Ctrl-C during one of our readings is swallowed."""

    def interrupted() -> None:
        raise kind

    with pytest.raises(kind):
        guarded(interrupted, "x", lambda gap: None)()
