"""LS510: what one thread keeps for itself grows as long as the thread lives."""

from leakscope.explain.rule import Case, Weight, rule

OF_ONE_THREAD = "(of one thread)"
THREAD_LOCAL = "_local"
"""Type of a `threading.local()`."""


@rule(
    "LS510",
    weight=Weight.HOLDER,
    fix="a pool's threads live as long as the program, and so does what they keep in a "
    "threading.local: set it anew at the start of each task, or bound it (`deque(maxlen=…)`)",
)
def thread_local(case: Case) -> bool:
    """What one thread keeps for itself grows as long as the thread lives.

    ## Why it leaks
    An attribute of a `threading.local` belongs to one thread and goes when that thread ends. The
    threads of a pool or a server do not end. A list that every task appends to is then never
    dropped, once in every thread.

    ## Example
    ```python
    scratch = threading.local()


    def augment(image):
        scratch.masks.append(make_mask(image))
    ```

    ## Use instead
    A local variable of the task. Where something has to be kept between tasks: one thing that is
    overwritten, or a `deque(maxlen=…)`.

    ## Not this rule when
    The threads themselves become more: LS511.
    """
    return any(link.type == THREAD_LOCAL or link.via.endswith(OF_ONE_THREAD) for link in case.above)
