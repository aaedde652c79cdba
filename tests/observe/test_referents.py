"""Modules are not asked what they refer to: one of Python's own answers with what it has freed."""

from __future__ import annotations

import subprocess
import sys

from leakscope.observe.referents import referents_of

AWAITS = """
import asyncio, gc, resource
from leakscope.observe.old_heap import Heap
from leakscope.observe.untracked import untracked_holders

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

async def main():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, 1)
    await future

asyncio.run(main())
for _ in range(3):
    Heap(is_deep=True)
    untracked_holders(0)
gc.collect()
print("done")
"""


def test_a_module_has_no_referents_and_others_have_theirs() -> None:
    held = object()
    assert referents_of(sys, [held], subprocess) == [held]


def test_looks_leave_a_program_with_asyncio_as_it_was() -> None:
    """Breaks, in Python 3.12, when a look asks `_asyncio`: the next one takes all memory."""
    ran = subprocess.run([sys.executable, "-c", AWAITS], capture_output=True, text=True, check=True)
    assert ran.stdout == "done\n"
