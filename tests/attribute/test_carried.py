"""Whether each value of a name is built from the one before."""

from __future__ import annotations

import pytest

from leakscope.attribute.carried import is_carried_on
from leakscope.model import Link

FILE = "/there/train.py"


def local(function: str) -> Link:
    return Link("local x in f()", "ndarray", "local", "x", FILE, function, 0)


@pytest.mark.parametrize(
    ("body", "is_carried"),
    [
        ("x = np.concatenate([x, rows])", True),
        ("x = extend(x, rows)", True),
        ("x += rows", True),
        ("x, y = grow(x), 1", True),
        ("old = x\n        x = np.vstack([old, rows])", True),
        ("parts = [rows]\n        parts.append(x)\n        x = np.vstack(parts)", True),
        ("x.resize((step, 4))", True),
        ("x = np.zeros((step, 4))", False),
        ("x = load(step)", False),
        ("x = load(step)\n        print(step, x.mean())", False),
        ("x = load(step)\n        total = total + x.sum()", False),
    ],
)
def test_a_variable(body: str, is_carried: bool) -> None:
    text = f"def f(rows):\n    x = np.empty(0)\n    for step in rows:\n        {body}\n"
    assert is_carried_on({FILE: text}, local("f")) is is_carried


@pytest.mark.parametrize(
    ("body", "is_carried"),
    [
        ("self.trace = np.concatenate([self.trace, rows])", True),
        ("self.trace = self.extended(rows)", True),
        ("self.trace = extended(self, rows)", True),
        ("self.trace = np.zeros(len(rows))", False),
        ("self.trace = rows * 2", False),
    ],
)
def test_an_attribute(body: str, is_carried: bool) -> None:
    text = (
        "class Recorder:\n    def __init__(self):\n        self.trace = np.empty(0)\n"
        f"    def record(self, rows):\n        {body}\n"
    )
    link = Link(".trace", "ndarray", "attribute", "trace", FILE, "Recorder", 0)
    assert is_carried_on({FILE: text}, link) is is_carried


def test_what_cannot_be_read_may_be_carried_on() -> None:
    assert is_carried_on({}, local("f"))
    assert is_carried_on({FILE: "def f(x):\n    return x.sum()\n"}, local("f"))
