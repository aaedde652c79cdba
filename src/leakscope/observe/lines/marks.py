"""A function's code in, the same code with marks out: a call before each line, and no other change.

For Python 3.11, which has no `sys.monitoring`. A trace function would slow down everything that the
function calls (a training step of 0.5 ms by 20 to 35 %, Python code several times), and take the
place of a debugger's or of coverage's. Marks are part of the one function, so nothing else changes.

The marks of a code object: `enter` at its start, `line` where a statement begins, `leave` before it
returns or yields, `resume` after a yield, `unwind` when an exception leaves it.

Before each line stands a countdown, an iterator of its own that the mark refills. While it lasts,
the line costs one step of it, some 10 ns; only then is the mark called, from the end of the code.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from leakscope.observe.lines.bytecode import (
    Handler,
    Instruction,
    decode,
    encode,
    exception_table,
    handlers_in,
    line_table,
    with_the_rest,
)

_OP = opcode.opmap
_NOT_BEFORE = frozenset(
    _OP[name]
    for name in ("CALL", "PRECALL", "PUSH_EXC_INFO", "RESUME", "SEND", "YIELD_VALUE")
    if name in _OP
)
"""Nothing comes between these and what is before them: the interpreter reads them as a pair, or
the exception is not yet where it belongs."""


class Marks(NamedTuple):
    """What is called, each with one number."""

    enter: Callable[[int], object]
    line: Callable[[int], object]
    """Called when the countdown of a line is at its end."""
    countdown: Callable[[int], Iterator[object]]
    """Gives the countdown of a line, once, when the code is made."""
    leave: Callable[[int], object]
    suspend: Callable[[int], object]
    resume: Callable[[int], object]
    unwind: Callable[[int], object]


def with_marks(code: CodeType, function: int, slot_of: dict[int, int], marks: Marks) -> CodeType:
    """The code with marks in it.

    Args:
        function: the number that `enter`, `leave`, `suspend` and `unwind` are called with.
        slot_of: the number that `line` and `resume` are called with, by line.
    """
    return _Marking(code, function, slot_of, marks).marked()


class _Marking:
    def __init__(
        self, code: CodeType, function: int, slot_of: dict[int, int], marks: Marks
    ) -> None:
        self._code = code
        self._function = function
        self._slot_of = slot_of
        self._marks = marks
        self._consts = list(code.co_consts)
        self._const_at: dict[int, int] = {}
        self._original, self._at = decode(code)
        # What stands where an original instruction stood: its marks, then itself.
        self._group: dict[int, list[Instruction]] = {}
        self._aside: list[tuple[list[Instruction], Instruction]] = []
        """Calls of marks at the end of the code, each with the instruction it stands for."""

    def marked(self) -> CodeType:
        first = next(i for i, one in enumerate(self._original) if one.operation == _OP["RESUME"])
        out: list[Instruction] = []
        last_slot: int | None = None
        is_put_off = False
        has_own_mark: set[int] = set()
        for index, one in enumerate(self._original):
            group: list[Instruction] = []
            if index > first:
                slot = self._slot_of.get(one.line or -1)
                if slot is not None and (slot != last_slot or is_put_off):
                    is_put_off = one.operation in _NOT_BEFORE
                    if not is_put_off:
                        group += self._line(slot, one, one)
                        has_own_mark.add(id(one))
                    last_slot = slot
                group += self._before(index, one, first)
            group.append(one)
            if one.operation == _OP["RESUME"]:
                if index == first:
                    group += self._call(self._marks.enter, self._function, one)
                else:
                    slot = self._slot_of.get(one.line or -1, last_slot)
                    group += self._call(self._marks.resume, slot or 0, one)
            self._group[id(one)] = group
            out += group
        self._return_to_loops(out, has_own_mark)
        unwinding = [
            *self._call(self._marks.unwind, self._function, self._original[first]),
            Instruction(_OP["RERAISE"], 1, None),
        ]
        return self._assemble(out, unwinding, first)

    def _before(self, index: int, one: Instruction, first: int) -> list[Instruction]:
        if one.operation == _OP["RETURN_VALUE"]:
            return self._call(self._marks.leave, self._function, one)
        if one.operation != _OP["YIELD_VALUE"]:
            return []
        suspend = self._call(self._marks.suspend, self._function, one)
        before = self._original[index - 1]
        if before.operation != _OP["SEND"]:
            return suspend
        # `throw` steps from the yield back to a SEND right before it and jumps as that says. The
        # one here is for it; the way of the program leads past it.
        send = Instruction(_OP["SEND"], 0, one.position)
        send.target = before.target
        skip = Instruction(_OP["JUMP_FORWARD"], 0, one.position)
        skip.target, skip.is_exact = one, True
        return [*suspend, skip, send]

    def _return_to_loops(self, out: list[Instruction], has_own_mark: set[int]) -> None:
        """A jump back to a loop's head begins that line again; the head itself has no mark, for
        the way into the loop leads through it too."""
        for one in self._original:
            target = one.target
            if one.operation != _OP["JUMP_BACKWARD"] or target is None:
                continue
            slot = self._slot_of.get(target.line or -1)
            here = self._slot_of.get(one.line or -1)
            if slot is None or slot == here or id(target) in has_own_mark:
                continue
            group = self._group[id(one)]
            at = out.index(group[0])
            # Instead of a mark of its own: the jump does nothing that could be counted.
            marked = [*self._line(slot, target, one), one]
            out[at : at + len(group)] = marked
            group[:] = marked

    def _line(self, slot: int, at: Instruction, stands_for: Instruction) -> list[Instruction]:
        """The countdown, in place; the mark, aside."""
        count = Instruction(_OP["FOR_ITER"], 0, at.position)
        done = Instruction(_OP["POP_TOP"], 0, at.position)
        back = Instruction(_OP["JUMP_BACKWARD"], 0, at.position)
        after = Instruction(_OP["NOP"], 0, at.position)
        mark = [*self._call(self._marks.line, slot, at), back]
        count.target, count.is_exact = mark[0], True
        back.target, back.is_exact = after, True
        self._aside.append((mark, stands_for))
        load = Instruction(_OP["LOAD_CONST"], self._const(self._marks.countdown(slot)), at.position)
        pop = Instruction(_OP["POP_TOP"], 0, at.position)
        return [load, count, pop, done, after]

    def _call(self, mark: Callable[[int], object], number: int, at: Instruction) -> list[Any]:
        def make(name: str, argument: int = 0) -> Instruction:
            operation = _OP[name]
            caches = bytes(2 * opcode._inline_cache_entries[operation])  # type: ignore[attr-defined]
            return Instruction(operation, argument, at.position, caches)

        return [
            make("PUSH_NULL"),
            make("LOAD_CONST", self._const(mark)),
            make("LOAD_CONST", self._const(number)),
            make("PRECALL", 1),
            make("CALL", 1),
            make("POP_TOP"),
        ]

    def _const(self, value: object) -> int:
        key = -1 - value if isinstance(value, int) else id(value)
        if key not in self._const_at:
            self._const_at[key] = len(self._consts)
            self._consts.append(value)
        return self._const_at[key]

    def _assemble(
        self, out: list[Instruction], unwinding: list[Instruction], first: int
    ) -> CodeType:
        # A mark may have been replaced meanwhile; what stood aside for it goes too.
        there = {id(one) for one in out}
        self._aside = [pair for pair in self._aside if id(pair[0][-1].target) in there]
        everything = [*out, *unwinding, *(one for mark, _ in self._aside for one in mark)]
        starts = self._settle(everything)

        def start_of(index: int) -> int:
            if index >= len(self._original):
                return starts[id(unwinding[0])]
            return starts[id(self._group[id(self._original[index])][0])]

        handlers = [
            Handler(
                start_of(self._at[one.start]),
                start_of(self._at[one.end]),
                # A handler begins with the exception on the stack: at itself, not at a mark.
                starts[id(self._original[self._at[one.target]])],
                one.depth,
                one.has_lasti,
            )
            for one in handlers_in(self._code.co_exceptiontable)
        ]
        handlers += self._handlers_aside(starts)
        entered = starts[id(self._original[first])] + 1
        cleanup = starts[id(unwinding[0])]
        after = cleanup + sum(one.width for one in unwinding)
        end = sum(one.width for one in everything)
        handlers = list(with_the_rest(handlers, entered, cleanup, after, end))
        return self._code.replace(
            co_code=b"".join(encode(one, starts) for one in everything),
            co_consts=tuple(self._consts),
            co_stacksize=self._code.co_stacksize + 6,
            co_linetable=line_table(everything, self._code.co_firstlineno),
            co_exceptiontable=exception_table(handlers),
        )

    def _handlers_aside(self, starts: dict[int, int]) -> list[Handler]:
        """What is raised in a mark (Ctrl-C) is handled as if it were raised at the line."""
        at = {id(one): index for index, one in enumerate(self._original)}
        unit_of = {index: unit for unit, index in reversed(self._at.items())}
        table = list(handlers_in(self._code.co_exceptiontable))
        found = []
        for mark, stands_for in self._aside:
            unit = unit_of[at[id(stands_for)]]
            start = starts[id(mark[0])]
            end = start + sum(one.width for one in mark)
            for one in table:
                if one.start <= unit < one.end:
                    target = starts[id(self._original[self._at[one.target]])]
                    found.append(Handler(start, end, target, one.depth, one.has_lasti))
        return found

    def _settle(self, everything: list[Instruction]) -> dict[int, int]:
        """Where each instruction starts, once no jump needs a longer argument any more."""
        while True:
            starts: dict[int, int] = {}
            at = 0
            for one in everything:
                starts[id(one)] = at
                at += one.width
            is_settled = True
            for one in everything:
                if one.target is None:
                    continue
                first = one.target if one.is_exact else self._group[id(one.target)][0]
                target = starts[id(first)]
                away = abs(target - (starts[id(one)] + one.width))
                if away != one.argument:
                    was = one.width
                    one.argument = away
                    is_settled = is_settled and one.width == was
            if is_settled:
                return starts
