"""A finding that the source alone would have raised is surer than one that it would not."""

from __future__ import annotations

from pathlib import Path

from leakscope.analysis import analyse
from leakscope.explain.findings import confirmed
from make import KIB, flat, line, recording

_SOURCE = """import torch
from torch import nn

def fit(batches):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        losses.append({})
"""


def test_a_lint_hit_on_the_keeping_line_raises_the_certainty(tmp_path: Path) -> None:
    plain = _certainty(tmp_path / "plain", _SOURCE.format("[0.0] * 1000"))
    same = _certainty(tmp_path / "same", _SOURCE.format("loss"))
    assert same == confirmed(plain) > plain


def test_what_is_no_python_for_us_confirms_nothing(tmp_path: Path) -> None:
    broken = _SOURCE.format("loss") + "\nprint 'python 2'\n"
    assert _certainty(tmp_path / "broken", broken) < _certainty(
        tmp_path / "fine", _SOURCE.format("loss")
    )


def test_what_seems_bounded_stays_in_doubt() -> None:
    assert confirmed(0.5) == 0.5
    assert confirmed(0.98) == 0.99


def _certainty(folder: Path, source: str) -> float:
    grows = line(30 * KIB)
    maker = recording(folder).steps(200, in_use=grows, blocks=flat(1000)).looked(20, 60, grows)
    report = analyse(maker.holds("losses", 1.0, 29 * KIB).source(source).done())
    (finding,) = report.findings
    return finding.certainty
