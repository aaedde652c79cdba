"""Writes docs/machine-effects.md from explain/machine/: `python docs/make_effects.py`."""

from __future__ import annotations

from pathlib import Path

from leakscope.explain.effects import Effect, load_effects

TARGET = Path(__file__).parent / "machine-effects.md"

_OPENING = """# Machine effects

Written by `docs/make_effects.py` from `src/leakscope/explain/machine/*.toml`.

The same program can hold more memory on one machine than on another, or leak on one only. These
are the differences that are known to do it. [`leakscope compare`](compare.md) looks for them in two
recordings and says which fits what differs in memory; [`leakscope bisect`](bisect.md) changes one
of them at a time and measures.

*Shows in* names the memory in which the effect is seen: *live* is in use, *held* is given back to
the allocator and not to the system, *resident* is what the kernel counts, *copied* are pages that
workers shared with their parent, *workers* is memory of worker processes, *peak* the highest point.
A difference that is known to act on other memory than what differs is no explanation, and is called
unlikely.
"""


def document() -> str:
    """All effects on one page."""
    lines = [_OPENING, "| effect | shows in | what it is |", "|---|---|---|"]
    lines += [f"| [{one.id}](#{one.id}) | {_shows(one)} | {one.title} |" for one in load_effects()]
    for one in load_effects():
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(effect: Effect) -> list[str]:
    return [
        f"## {effect.id}",
        "",
        f"{effect.title}.",
        "",
        f"- **Why:** {effect.because}",
        f"- **Shows in:** {_shows(effect)}",
        f"- **More memory with:** {_direction(effect)}",
        f"- **Do:** {effect.remedy}",
        f"- **Looked at:** {', '.join(f'`{one}`' for one in effect.facts)}",
        f"- **Read more:** <{effect.url}>",
    ]


def _shows(effect: Effect) -> str:
    return ", ".join(one.value for one in effect.explains)


def _direction(effect: Effect) -> str:
    if effect.bad:
        return f"versions {effect.bad}"
    if effect.order:
        return f"the later of {', '.join(effect.order)}"
    if effect.more:
        unset = f" (not set counts as {effect.unset})" if effect.unset else ""
        return f"the {effect.more} value{unset}"
    return "either; it is not known which"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
