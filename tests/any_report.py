"""Any report that the types allow, built from the model itself: for hypothesis."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from leakscope.model import Report

# Strings that have broken terminals, tables and markup before, beside any others.
_NASTY = [
    "[red]x[/red]", "[/]", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\nb", "a\r\nb", "a|b", "``",
    "<script>", "| x |\n| - |", "训练" * 40, "x" * 300, "\u202egnp.exe", "\udc80", "\x9b2J",
    ":smile:", "e\u0301" * 30, "👩\u200d👩\u200d👧" * 9, "", " ", "- item", "# head", "1. one",
    "\\", "&lt;", "\t\t",
]  # fmt: skip

words = st.one_of(
    st.sampled_from(_NASTY),
    st.text(max_size=40),
    st.text(st.characters(categories=["Cs", "Cc", "Cf", "Lo", "So", "Mn"]), max_size=20),
)
numbers = st.floats() | st.sampled_from([0.0, -1.0, 1e300, 5e-324, 1023.99])
whole = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**40)


def any_of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a type, as msgspec understands it."""
    match kind:
        case inspect.StrType():
            return words
        case inspect.FloatType():
            return numbers
        case inspect.IntType():
            return whole
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.EnumType():
            return st.sampled_from(list(kind.cls))
        case inspect.UnionType():
            return st.one_of([any_of(member) for member in kind.types])
        case inspect.VarTupleType():
            return st.lists(any_of(kind.item_type), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(any_of(kind.key_type), any_of(kind.value_type), max_size=3)
        case inspect.StructType():
            fields = {field.name: any_of(field.type) for field in kind.fields}
            return st.builds(kind.cls, **fields)
        case _:
            raise NotImplementedError(kind)


reports: st.SearchStrategy[Report] = any_of(msgspec.inspect.type_info(Report))
