"""What is in memory, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope import text
from leakscope.model import HeapContents, Occupied
from leakscope.render.style import Style

_INDENT = 12


def render_contents(found: Sequence[HeapContents], style: Style) -> str:
    """One block a process: the largest holders first, each on two lines."""
    lines: list[str] = []
    for one in found:
        at = f" at step {text.count(one.at_step)}" if one.at_step is not None else ""
        lines.append(
            f"{one.process}{at}: {text.size(one.bytes)} in {text.count(one.objects)} objects"
        )
        lines.append("")
        for content in one.contents:
            lines += _lines(content, one.bytes, style.width)
        lines.append("")
    return "\n".join(lines)


def _shared(content: Occupied) -> str:
    """What would stay if this holder went."""
    if content.retained_bytes is None:
        return ""
    others = content.bytes - content.retained_bytes
    is_told = text.size(content.retained_bytes) != text.size(content.bytes)
    return f", {text.size(others)} of it held by others too" if is_told else ""


def _lines(content: Occupied, total: int, width: int) -> list[str]:
    share = text.percent(content.bytes / total) if total else ""
    what = f"{text.count(content.count)} × {content.what}" if content.count > 1 else content.what
    role = "" if content.role == "object" else f", {content.role}"
    head = f"{text.size(content.bytes):>{_INDENT - 2}}  {what}{role}  {share}{_shared(content)}"
    room = max(width - _INDENT, 20)
    holder = content.holder
    if len(holder) > room:
        holder = "… " + holder[-(room - 2) :]
    return [head, " " * _INDENT + holder]
