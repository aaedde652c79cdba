"""LS512: tasks of asyncio are kept after they are done, with their results."""

from leakscope.explain.rule import Case, Weight, rule


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
    in_asyncio = any("/asyncio/" in link.file for link in case.above)
    is_queue = any(link.file.endswith("/asyncio/queues.py") for link in case.above)
    return case.holding.item == "Task" or (in_asyncio and not is_queue)
