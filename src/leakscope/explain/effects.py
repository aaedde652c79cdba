"""A difference between two machines in, what is known of its effect on memory out.

The catalogue is machine/*.toml: which fact, on which kind of memory, in which direction, why, where
to read more. It is knowledge about machines as known/*.toml is about libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from leakscope.explain.versions import is_within, parts_of
from leakscope.model import Likelihood, Symptom

_STRONG = 0.8
"""From this weight on an effect without a direction is called likely: another allocator is."""


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    title: str
    facts: tuple[str, ...]
    """Names of facts, * for anything: `setting MALLOC_ARENA_MAX`, `package torch`."""
    explains: tuple[Symptom, ...]
    weight: float
    """Between 0 and 1: how often it is the reason where it differs, as far as is known."""
    because: str
    remedy: str
    url: str
    more: Literal["", "higher", "lower"] = ""
    """Which value makes for more memory."""
    unset: str = ""
    """The value that stands for one that is not set; `8*cores` is glibc's number of arenas."""
    order: tuple[str, ...] = ()
    """Words from the least memory to the most, where values are words."""
    bad: str = ""
    """Versions that are known to leak; the effect is there if one side has one of them."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effect: tuple[Effect, ...]


class Judgement(msgspec.Struct, frozen=True):
    effect: Effect
    likelihood: Likelihood
    because: str

    @property
    def rank(self) -> tuple[int, float]:
        """Smaller is better."""
        return list(Likelihood).index(self.likelihood), -self.effect.weight


@cache
def load_effects() -> tuple[Effect, ...]:
    """All effects, file by file, in the order they are written."""
    folder = files("leakscope.explain") / "machine"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=str)
    return tuple(
        effect
        for file in found
        for effect in read_effects(file.read_text(encoding="utf-8"), file.name)
    )


def read_effects(text: str, file: str) -> tuple[Effect, ...]:
    """The effects of one file; a ValueError names the file, the effect and what is wrong."""
    try:
        effects = msgspec.toml.decode(text, type=_File).effect
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: {error}") from error
    for effect in effects:
        if wrong := "; ".join(_wrong_with(effect)):
            raise ValueError(f"{file}: effect {effect.id}: {wrong}")
    return effects


def judge_difference(
    name: str,
    values: tuple[str | None, str | None],
    symptoms: Mapping[Symptom, int],
    cores: tuple[int, int],
) -> Judgement | None:
    """The effect that explains most of what differs; None if none is known for this fact.

    `symptoms` says for each kind of memory which run has more, 0 for the first, 1 for the second;
    the one that tells most comes first, and only what explains that one is likely.
    """
    judged = [
        _judge(effect, values, symptoms, cores)
        for effect in load_effects()
        if any(fnmatchcase(name, pattern) for pattern in effect.facts)
        and (not effect.bad or any(_is_bad(effect, value) for value in values))
    ]
    return min(judged, key=lambda one: one.rank, default=None)


def _judge(
    effect: Effect,
    values: tuple[str | None, str | None],
    symptoms: Mapping[Symptom, int],
    cores: tuple[int, int],
) -> Judgement:
    fitting = [symptom for symptom in effect.explains if symptom in symptoms]
    if not symptoms:
        return Judgement(effect, Likelihood.UNKNOWN, effect.because)
    if not fitting:
        other = " and ".join(symptom.value for symptom in effect.explains)
        because = f"{effect.because}; but it shows in other memory ({other}), not in what differs"
        return Judgement(effect, Likelihood.UNLIKELY, because)
    lead = next(iter(symptoms))
    is_lead = lead in effect.explains
    more = symptoms[lead if is_lead else fitting[0]]
    expected = _side_with_more(effect, values, cores)
    if expected is None:
        is_strong = effect.weight >= _STRONG and not effect.more and not effect.order and is_lead
        likelihood = Likelihood.LIKELY if is_strong else Likelihood.POSSIBLE
        return Judgement(effect, likelihood, effect.because)
    if expected != more:
        because = f"{effect.because}; but here it is the other way round"
        return Judgement(effect, Likelihood.UNLIKELY, because)
    is_strong = effect.weight >= _STRONG / 2 and is_lead
    likelihood = Likelihood.LIKELY if is_strong else Likelihood.POSSIBLE
    return Judgement(effect, likelihood, effect.because)


def _side_with_more(
    effect: Effect, values: tuple[str | None, str | None], cores: tuple[int, int]
) -> int | None:
    """Which run has the value that makes for more memory; None if that is not known."""
    if effect.bad:
        bad = [_is_bad(effect, value) for value in values]
        return bad.index(True) if sum(bad) == 1 else None
    places: list[float] = []
    for value, count in zip(values, cores, strict=True):
        place = _place(effect, value, count)
        if place is None:
            return None
        places.append(place)
    if places[0] == places[1]:
        return None
    largest = int(places[1] > places[0])
    return largest if effect.more != "lower" else 1 - largest


def _place(effect: Effect, value: str | None, cores: int) -> float | None:
    if effect.order:
        return float(effect.order.index(value)) if value in effect.order else None
    if not effect.more:
        return None
    word = effect.unset if value is None else value
    if word == "8*cores":
        return 8.0 * cores
    number = re.match(r"\s*(0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?)", word or "")
    if number is None:
        return None
    digits = number.group(1)
    return float(int(digits, 16)) if digits.startswith("0x") else float(digits)


def _is_bad(effect: Effect, value: str | None) -> bool:
    return value is not None and is_within(value, effect.bad)


def _wrong_with(effect: Effect) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", effect.id):
        yield "its id is not of small letters, digits and hyphens"
    if not effect.facts or not effect.explains:
        yield "it names no fact or explains nothing"
    if not 0 < effect.weight <= 1:
        yield "its weight is not between 0 and 1"
    if not effect.url.startswith("https://"):
        yield "its url does not begin with https://"
    if effect.bad and parts_of(effect.bad) is None:
        yield f"`{effect.bad}` names no versions; for example >=6.11,<6.12"
    yield from _ends_badly(effect, ("title", "because", "remedy"))


def _ends_badly(effect: Effect, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if not getattr(effect, name).strip() or getattr(effect, name).endswith("."):
            yield f"its {name} is empty or ends with a full stop"
