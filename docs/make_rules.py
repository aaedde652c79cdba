"""Writes docs/rules.md from the rules' own pages: `python docs/make_rules.py`."""

from __future__ import annotations

import re
from pathlib import Path

from leakscope.explain.catalogue import load_catalogue

TARGET = Path(__file__).parent / "rules.md"

_OPENING = """# Rules

Written by `docs/make_rules.py` from the rules themselves; `leakscope explain LS101` shows the same.

A finding carries the number of the rule that explains it, a note that of the harmless behaviour it
tells of. By hundreds: LS0 not a leak, and why it looks like one; LS1 the training loop; LS2 data
and workers; LS3 framework state; LS4 GPU; LS5 Python; LS6 native code; LS7 inference and serving;
LS9 TensorFlow, Keras and JAX. A number is never given a second time.
"""


def document() -> str:
    """All rules on one page."""
    pages = load_catalogue().pages
    lines = [_OPENING, "| number | name | what it is |", "|---|---|---|"]
    for one in pages:
        first = one.page.partition("\n")[0]
        lines.append(f"| [{one.code}](#{one.code.lower()}-{one.name}) | {one.name} | {first} |")
    for one in pages:
        lines += ["", f"## {one.code} {one.name}", "", re.sub("(?m)^## ", "### ", one.page)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
