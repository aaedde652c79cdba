"""LS511: threads are started and never end, each with its variables and its stack."""

import re

from leakscope.explain.rule import Case, Weight, rule

_STARTS = re.compile(r"\b(?:Thread|Timer)\(")
_PARTS = ("._args", "._kwargs", "._started", "._target")
"""Of a thread of the standard library; a class of the program's may have the same name."""


@rule(
    "LS511",
    weight=Weight.HOLDER,
    fix="end each thread (a timeout where it waits, a flag that it reads) and `join()` it, or hand "
    "the work to one ThreadPoolExecutor instead of a new thread each time",
)
def threads_kept(case: Case) -> bool:
    """Threads are started and never end, each with its variables and its stack.

    ## Why it leaks
    A thread that waits for something which never comes keeps its arguments, the variables of its
    functions, and a stack. `daemon=True` only means that the program does not wait for it at its
    end.

    ## Example
    ```python
    threading.Thread(target=write, args=(snapshot,), daemon=True).start()  # write() never returns
    ```

    ## Use instead
    One worker thread, or a `ThreadPoolExecutor`, with a bounded queue. Wait with a timeout
    (`event.wait(timeout=30)`), and `join()` the threads that you start.

    ## Not this rule when
    The number of threads stays the same and what one of them holds grows: LS510, LS501.
    """
    is_table = any(
        link.name in ("_active", "_limbo") and link.file.endswith("/threading.py")
        for link in case.above
    )
    is_thread = case.holding.item in ("Thread", "Timer") and any(
        link.via in _PARTS for link in case.below
    )
    return is_table or is_thread or bool(_STARTS.search(case.kept_by))
