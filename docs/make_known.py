"""Writes docs/known.md from the entries in explain/known/: `python docs/make_known.py`."""

from __future__ import annotations

from pathlib import Path

from leakscope.explain.known import Entry, load_known

TARGET = Path(__file__).parent / "known.md"

_OPENING = """# Known behaviour of libraries

Written by `docs/make_known.py` from `src/leakscope/explain/known/*.toml`.

Some growth is not the program's doing: a library keeps it, for a while or for good. Where a suspect
is one of these, the finding keeps the number of its [rule](rules.md), says what is known, and
blames the library, unless a container of the program's own keeps it. A cache with a bound and what
a library keeps by design are told after a leak of the program's own that is at least a quarter as
large.

An entry is matched by what holds (`module:name`, `Class#attribute`), by what one item leads to, or,
for native memory, by the Python frames below the program's line; and by the versions that the
recording names. A match says that a library is known to do this, not that nothing else is wrong.

| kind | meaning |
|---|---|
| cache-bounded | it fills and then stops |
| cache-unbounded | it grows as long as new things are asked of it |
| by-design | the library promises to keep it, until you say otherwise |
| bug | it should not be kept, and a later version may not |
| artefact | a tool keeps it, not the program |
| not-a-leak | memory rises and nothing is kept |
"""


def document() -> str:
    """All entries on one page."""
    lines = [_OPENING, "| entry | kind | what it is |", "|---|---|---|"]
    lines += [f"| [{one.id}](#{one.id}) | {one.kind} | {one.title} |" for one in load_known()]
    for one in load_known():
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry) -> list[str]:
    versions = ", ".join(
        f"{package} {'(all)' if one == '*' else one}" for package, one in entry.applies.items()
    )
    match = entry.match
    seen = [*match.holders, *match.items, *match.frames, *([match.kind] if match.kind else [])]
    seen += [f"{name} not set" for name, value in match.environment.items() if not value]
    return [
        f"## {entry.id}",
        "",
        f"{entry.title[0].upper()}{entry.title[1:]}.",
        "",
        f"- **Kind:** {entry.kind}",
        f"- **Grows with:** {entry.grows_with}",
        f"- **Fix:** {entry.fix}",
        f"- **Applies to:** {versions}",
        f"- **Recognised by:** {', '.join(f'`{one}`' for one in seen)}",
        f"- **Read more:** <{entry.url}>",
    ]


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
