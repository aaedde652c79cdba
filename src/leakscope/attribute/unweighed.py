"""Growth that goes to what cannot be weighed: traced graphs, tapes, compiled functions.

Such a thing tells nobody how much memory it has, and most of it is not Python's. Where more of them
are alive after every look, and things that can be weighed do not account for the growth, what is
left is theirs: it comes with them, and nothing else was seen to grow. A weight that no such thing
has is not believed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from leakscope.attribute.suspect import Suspect

_HEAVIEST = 64 << 20
"""Bytes of one graph or executable. Measured on small models: 0.5 to 10 MB for the graphs of one
training function, 1.5 to 3 MB for an executable (facts of TensorFlow 2.21 and JAX 0.10, CPU)."""

_SAME = 0.5
"""A holder of compiled functions that grows so fast beside the compiler's own count of executables
is why they are alive."""


def give_the_rest(suspects: Sequence[Suspect], measured: float) -> list[Suspect]:
    """The same suspects; those that keep opaque things share what nobody accounts for, by how many
    each gains. `measured` is the growth per step."""
    heavy = _without_echo([one for one in suspects if one.holding.opaque])
    rest = 1.0 - sum(one.share for one in suspects)
    total = sum(map(_gained, heavy))
    if rest <= 0 or total <= 0 or rest * measured / total > _HEAVIEST:
        return [one for one in suspects if one.share > 0]
    given = {id(one): rest * _gained(one) / total for one in heavy}
    together = [_with(one, given.get(id(one), 0.0), measured) for one in suspects]
    return [one for one in together if one.share > 0]


def _with(suspect: Suspect, more: float, measured: float) -> Suspect:
    if more <= 0:
        return suspect
    holding = suspect.holding
    native = more * measured / suspect.count_per_step
    parts = holding.parts | {"native": holding.parts.get("native", 0.0) + native}
    return suspect._replace(
        share=suspect.share + more,
        holding=replace(holding, bytes_each=holding.bytes_each + native, parts=parts),
    )


def _gained(suspect: Suspect) -> float:
    return suspect.count_per_step * sum(suspect.holding.opaque.values())


def _without_echo(suspects: list[Suspect]) -> list[Suspect]:
    """Without the compiler's own count where a holder of the program explains it."""
    held = sum(_gained(one) for one in suspects if one.holding.kind != "pile")
    return [one for one in suspects if one.holding.kind != "pile" or held < _SAME * _gained(one)]
