"""LS508: a queue is filled faster than it is emptied."""

from leakscope.explain.rule import Case, Weight, rule

QUEUES = ("/queue.py", "/asyncio/queues.py", "/multiprocessing/queues.py", "/concurrent/futures/")
WAITING = ("_WorkItem", "Future")


@rule(
    "LS508",
    weight=Weight.HOLDER,
    fix="give the queue a bound (`Queue(maxsize=…)`, which makes the producer wait), see that its "
    "reader runs and keeps up, and take results off a list of futures as they are done",
)
def backlog(case: Case) -> bool:
    """A queue is filled faster than it is emptied.

    ## Why it leaks
    A queue without a bound takes whatever it is given. If its reader is slower, has died or was
    never started, everything waits there. An executor has such a queue too: `submit` never waits.
    A list of futures keeps the results even after they were read.

    ## Example
    ```python
    pending = queue.Queue()
    for batch in loader:
        pending.put(histogram(batch))  # and nobody calls pending.get()
    ```

    ## Use instead
    `queue.Queue(maxsize=16)`: then `put` waits, or raises `queue.Full`, when the reader does not
    keep up. Wait for some futures before submitting more, and drop them once they are read.

    ## Not this rule when
    A list or deque of your own is used as a queue: LS501. Tasks of asyncio are LS512.
    """
    grows = case.above[-1:]
    in_queue = any(link.file.endswith(QUEUES[:3]) or QUEUES[3] in link.file for link in grows)
    is_simple_queue = any(link.type == "SimpleQueue" for link in case.above)
    below = [link.type for link in case.below[:1]]
    is_future = any(one in WAITING for one in below) and any(
        link.via in ("._result", ".future", ".fn", ".args") for link in case.below
    )
    return in_queue or is_simple_queue or is_future
