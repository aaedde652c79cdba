"""LS512: tasks of asyncio are kept after they are done, with their results."""

from leakscope.explain.rule import Case, Weight, rule

_STARTS = ("create_task(", "ensure_future(")


@rule(
    "LS512",
    weight=Weight.HOLDER,
    fix="take a task out when it is done (`task.add_done_callback(tasks.discard)`), or use "
    "`asyncio.TaskGroup`; a task keeps its result, its exception and its context",
)
def tasks_kept(case: Case) -> bool:
    """Tasks of asyncio are kept after they are done, with their results.

    ## Why it leaks
    A task keeps its result or its exception, its coroutine and its context as long as somebody
    refers to it. A list of tasks, kept so that they are not collected too early, keeps all of
    them. A task that waits for ever keeps its variables too.

    ## Example
    ```python
    tasks.append(asyncio.create_task(handle(request)))
    ```

    ## Use instead
    ```python
    task = asyncio.create_task(handle(request))
    tasks.add(task)  # a set
    task.add_done_callback(tasks.discard)
    ```
    Or `async with asyncio.TaskGroup()`, which lets go of a task that is done.

    ## Not this rule when
    The tasks are done and gone, and what they left behind is kept: LS501.
    """
    # Every coroutine that runs is a variable of the loop that runs it: `main` in asyncio.run().
    in_asyncio = any("/asyncio/" in link.file and link.kind != "local" for link in case.above)
    is_queue = any(link.file.endswith("/asyncio/queues.py") for link in case.above)
    return (in_asyncio and not is_queue) or (case.holding.item == "Task" and _is_of_asyncio(case))


def _is_of_asyncio(case: Case) -> bool:
    """A class of the program's may have the same name. Its objects have attributes, which a task,
    written in C, has not."""
    if any(link.via.startswith(".") for link in case.below):
        return False
    made_in_loop = any(
        "/asyncio/" in frame.file for site in case.holding.sites for frame in site.frames
    )
    return made_in_loop or any(start in case.kept_by for start in _STARTS)
