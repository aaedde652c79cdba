"""An exhibit in which every string wants to be something other than text."""

from __future__ import annotations

from typing import Any

import msgspec

import make_report
from leakscope.model import (
    Branch,
    Curve,
    Excerpt,
    Exhibit,
    Finding,
    Fix,
    Gap,
    Layer,
    Panel,
    Picture,
    Report,
    Span,
)

ATTACKS = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"><svg onload="window.hacked = 1">',
    "' onmouseover='window.hacked = 1' x='",
    "</style><style>body { display: none }</style>",
    "<!--<script>",
    "javascript:window.hacked=1",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "\u2028\u2029line\nbreak\r\n",
    "nul\x00 and \x1b[31m and \udc80",
    "https://example.com/hacked.js",
    "tensor of " + "x" * 10_000_000,
)


def hostile_exhibit() -> Exhibit:
    """A whole report and a whole picture: each string one of the attacks, all of them used."""
    report = make_report.leaking()
    plain = _spoiled(msgspec.to_builtins(report), [0])
    spoiled = msgspec.convert(plain, Report)
    finding = spoiled.findings[0]
    finding = msgspec.structs.replace(finding, fingerprint=ATTACKS[0])
    spoiled = msgspec.structs.replace(
        spoiled,
        findings=(finding, *(_variant(finding, attack) for attack in ATTACKS)),
        blind_spots=tuple(Gap(attack, attack, attack) for attack in ATTACKS),
        notes=ATTACKS,
    )
    return Exhibit(spoiled, _picture(spoiled))


def _variant(finding: Finding, attack: str) -> Finding:
    return msgspec.structs.replace(
        finding,
        rule=attack,
        name=attack,
        says=attack,
        holder=(attack,),
        fix=Fix(attack, f"--- a\n+++ b\n-{attack}\n+{attack}"),
        known=attack,
    )


def _picture(report: Report) -> Picture:
    steps = (1.0, 2.0, 3.0)
    values = (1024.0, 4096.0, 9000.0)
    panel = Panel(
        process=ATTACKS[0],
        steps=steps,
        layers=tuple(Layer(attack, attack, values, 1.5, 2.0, attack) for attack in ATTACKS),
        curves=(
            Curve("heap.in_use_bytes", values),
            Curve("heap.held_bytes", (None, 1.0, 2.0)),
            Curve(ATTACKS[1], values),
        ),
        rows=3,
    )
    sites = [site for one in report.findings for site in (one.site, one.keeper) if site]
    return Picture(
        panels=(panel,),
        spans=tuple(Span(ATTACKS[0], attack, 1.0, 3.0, attack) for attack in ATTACKS),
        excerpts=tuple(Excerpt(site.file, site.line, site.line, ATTACKS) for site in sites),
        tree=(
            Branch(ATTACKS[0], ATTACKS[1], 9000.0, -1),
            *(Branch(attack, attack, 500.0, 0, attack) for attack in ATTACKS),
        ),
        tree_at_step=3.0,
        sparks={ATTACKS[0]: (1, 2, 3)},
    )


_KEPT = {"type", "verdict", "outcome", "shape", "unit", "blame", "steps_from"}
"""Words that the model allows few of."""


def _spoiled(value: Any, turn: list[int]) -> Any:
    if isinstance(value, str):
        turn[0] += 1
        return ATTACKS[turn[0] % len(ATTACKS)]
    if isinstance(value, dict):
        return {key: item if key in _KEPT else _spoiled(item, turn) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spoiled(item, turn) for item in value]
    return value
