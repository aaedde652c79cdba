"""A tap hears an attribute and is gone from the class and the stack."""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import pytest

from leakscope.observe.counters.step_counter import StepCounter
from leakscope.observe.tap import SetTap, Tap


class Owner:
    level: int | None = None

    def __init__(self, own: int | None = None) -> None:
        if own is not None:
            self.level = own


class Heir(Owner):
    pass


@pytest.mark.parametrize("owner", [Owner, Heir])
def test_answers_as_the_class_would(owner: type[Owner]) -> None:
    """Breaks when a tapped attribute reads, sets, deletes or defaults differently."""
    heard: list[Any] = []
    early = owner(3)
    copy.copy(early)  # leaves a note in the class
    before = dict(owner.__dict__)
    tap = Tap(owner, "level", on_read=heard.append).install()
    try:
        late = owner()
        assert (early.level, late.level, owner.level) == (3, None, None)
        assert heard == [early, late]  # reading the class is not reading an instance
        late.level = 9
        assert (late.level, vars(late)) == (9, {"level": 9})
        del late.level
        assert late.level is None
        with pytest.raises(AttributeError):
            del late.level
        assert copy.deepcopy(early).level == 3
        assert pickle.loads(pickle.dumps(early)).level == 3
        assert hasattr(late, "level")
    finally:
        tap.remove()
    assert dict(owner.__dict__) == before


def test_attribute_that_only_instances_have() -> None:
    """Breaks when a missing attribute is answered with something, or the class keeps it after."""
    told: list[tuple[Any, int]] = []
    tap = Tap(Heir, "count", on_set=lambda one, value: told.append((one, value))).install()
    one: Any = Heir()
    try:
        with pytest.raises(AttributeError):
            one.count  # noqa: B018
        assert not hasattr(Heir, "count")
        one.count = 1
        one.count += 1
        assert told == [(one, 1), (one, 2)]
    finally:
        tap.remove()
    assert one.count == 2
    assert "count" not in Heir.__dict__


def test_remove_leaves_what_others_put_there() -> None:
    """Breaks when taking our tap away also takes away what replaced it."""
    tap = Tap(Heir, "level").install()
    Heir.level = 5
    tap.remove()
    assert Heir.__dict__["level"] == 5
    del Heir.level
    tap.remove()
    assert "level" not in Heir.__dict__


def test_stack_holds_no_frame_of_ours_afterwards() -> None:
    """Breaks when the program's code runs below the tap, and tracebacks show it."""

    class Caller:
        run: Any = None

        def __call__(self) -> None:
            if self.run is not None:
                self.run()

    def fail() -> None:
        raise ValueError("mine")

    tap = Tap(Caller, "run", on_read=lambda one: None).install()
    try:
        caller = Caller()
        caller.run = fail
        with pytest.raises(ValueError, match="mine") as caught:
            caller()
    finally:
        tap.remove()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_pickled_by_value_it_is_the_value() -> None:
    """Breaks when a class that travels by value (cloudpickle) takes the agent along."""
    assert pickle.loads(pickle.dumps(Tap(Owner, "level"))) is None
    assert pickle.loads(pickle.dumps(Tap(Owner, "missing"))) is None
    data = pickle.dumps(Tap(Owner, "level"))
    assert b"leakscope" not in data


def test_counts_what_is_set_and_nothing_else() -> None:
    """Breaks when a data loader's batch is counted twice, or its reset to zero as a batch."""
    counter = StepCounter("dataloader", lambda source: None, lambda: 0)
    tap = SetTap(Heir, "yielded", counter, counter.look).install()
    one: Any = Heir()
    try:
        with pytest.raises(AttributeError):
            one.yielded  # noqa: B018
        one.yielded = 0
        assert (one.yielded, counter.count) == (0, 0)
        for batch in range(1, 100):
            one.yielded += 1
            assert (one.yielded, counter.count) == (batch, batch)
        del one.yielded
        assert (hasattr(one, "yielded"), counter.count) == (False, 99)
    finally:
        tap.remove()
    assert "yielded" not in vars(Heir)
