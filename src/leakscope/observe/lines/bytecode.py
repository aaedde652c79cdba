"""The code of a function as instructions that can be moved, and back. Of Python 3.11 only."""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

_EXTENDED = opcode.opmap["EXTENDED_ARG"]


class Instruction:
    __slots__ = ("argument", "caches", "is_exact", "operation", "position", "target")

    def __init__(self, operation: int, argument: int, position: Any, caches: bytes = b"") -> None:
        self.operation = operation
        self.argument = argument
        self.position = position
        self.caches = caches
        self.target: Instruction | None = None
        self.is_exact = False
        """The jump goes to the very instruction; others go to the marks before it."""

    @property
    def line(self) -> int | None:
        return self.position[0] if self.position else None

    @property
    def width(self) -> int:
        """In code units of two bytes."""
        prefixes = max(0, (self.argument.bit_length() + 7) // 8 - 1)
        return prefixes + 1 + len(self.caches) // 2


class Handler(NamedTuple):
    start: int
    end: int
    target: int
    depth: int
    has_lasti: bool


def decode(code: CodeType) -> tuple[list[Instruction], dict[int, int]]:
    """The instructions, and which one begins at each code unit."""
    raw = code.co_code
    positions = list(code.co_positions())
    found: list[Instruction] = []
    at: dict[int, int] = {len(raw) // 2: -1}
    ends: list[int] = []
    unit = argument = 0
    start = 0
    while unit * 2 < len(raw):
        operation, low = raw[unit * 2], raw[unit * 2 + 1]
        argument = argument << 8 | low
        at[unit] = len(found)
        unit += 1
        if operation == _EXTENDED:
            continue
        n_caches = opcode._inline_cache_entries[operation]  # type: ignore[attr-defined]
        caches = bytes(2 * n_caches)
        found.append(Instruction(operation, argument, positions[unit - 1], caches))
        unit += n_caches
        ends.append(unit)
        argument = 0
        start = unit
    at[start] = len(found)
    for one, end in zip(found, ends, strict=True):
        if one.operation in dis.hasjrel:
            is_back = "BACKWARD" in opcode.opname[one.operation]
            one.target = found[at[end - one.argument if is_back else end + one.argument]]
    return found, at


def encode(one: Instruction, starts: dict[int, int]) -> bytes:
    argument = one.argument
    out = bytearray()
    for shift in (24, 16, 8):
        if argument >> shift:
            out += bytes((_EXTENDED, argument >> shift & 0xFF))
    return bytes(out + bytes((one.operation, argument & 0xFF)) + one.caches)


def handlers_in(table: bytes) -> Iterator[Handler]:
    values = iter(table)

    def number() -> int:
        byte = next(values)
        value = byte & 63
        while byte & 64:
            byte = next(values)
            value = value << 6 | byte & 63
        return value

    while True:
        try:
            start = number()
        except StopIteration:
            return
        length, target, depth = number(), number(), number()
        yield Handler(start, start + length, target, depth >> 1, bool(depth & 1))


def with_the_rest(
    handlers: list[Handler], start: int, cleanup: int, after: int, end: int
) -> Iterator[Handler]:
    """The handlers, and the cleanup for whatever they do not cover, but for itself."""
    itself = Handler(cleanup, after, cleanup, 0, False)
    for one in sorted([*handlers, itself]):
        if start < one.start:
            yield Handler(start, one.start, cleanup, 0, True)
        if one is not itself:
            yield one
        start = max(start, one.end)
    if start < end:
        yield Handler(start, end, cleanup, 0, True)


def exception_table(handlers: list[Handler]) -> bytes:
    out = bytearray()
    for one in handlers:
        numbers = (one.start, one.end - one.start, one.target, one.depth << 1 | one.has_lasti)
        for index, value in enumerate(numbers):
            digits = [value & 63]
            while value := value >> 6:
                digits.append(value & 63 | 64)
            digits.reverse()
            digits[0] |= 128 if index == 0 else 0
            out += bytes(digits)
    return bytes(out)


def line_table(everything: list[Instruction], first_line: int) -> bytes:
    """See Objects/locations.md of CPython 3.11: runs of code units, with or without columns."""
    out = bytearray()
    line = first_line
    for one in everything:
        left = one.width
        while left > 0:
            length = min(left, 8)
            left -= length
            head = 128 | length - 1
            if one.line is None:
                out.append(head | 15 << 3)
                continue
            row, end_row, column, end_column = one.position
            if column is None or end_column is None or end_row is None or end_row < row:
                out.append(head | 13 << 3)
                out += _signed(row - line)
            else:
                out.append(head | 14 << 3)
                out += _signed(row - line)
                for value in (end_row - row, column + 1, end_column + 1):
                    out += _unsigned(value)
            line = row
    return bytes(out)


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value >= 64:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _unsigned(-value << 1 | 1 if value < 0 else value << 1)
