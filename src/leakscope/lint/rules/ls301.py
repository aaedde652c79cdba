"""LS301 in the source: a hook is registered again and again, and its handle is dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.repeated import is_repeated

_HOOK = re.compile(r"^register_(.+_)?hook$")


def _find(file: File) -> Iterator[Spot]:
    for line, call in file.outline.calls:
        if not isinstance(call.func, ast.Attribute) or not _HOOK.match(call.func.attr):
            continue
        how = is_repeated(call.func.value, line, file)
        if how:
            says = f"`{ast.unparse(call.func)}` seems to run {how}, and its handle is dropped"
            yield Spot(call, says, LIKELY if "loop" in how else POSSIBLE)


CHECK = Check(
    "LS301",
    "hooks-pile-up",
    "a hook is registered in every step and never removed",
    "register it once, or keep the handle and call handle.remove()",
    _find,
)
