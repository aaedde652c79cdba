"""LS203: tensors that workers have sent are kept, and each keeps a block of shared memory."""

from leakscope.explain.rule import Case, Weight, rule

SHARED_SHARE = 0.5
"""Of what one item keeps: from here on it is shared memory that fills."""

RECEIVERS = ("torch/multiprocessing/", "torch/utils/data/", "multiprocessing/queues.py")
"""Parts of paths in the stack of a tensor that came from another process."""

LIST_OF_THEM = "torch/multiprocessing/reductions.py"
"""Where torch notes every block of shared memory that came here and is still in use."""


@rule(
    "LS203",
    weight=Weight.ITEM,
    fix="keep only what you need of a batch, as a copy (`batch[:4].clone()`), and let the batch "
    "go: each tensor that came from a worker holds a block of /dev/shm and an open file",
)
def worker_tensors_kept(case: Case) -> bool:
    """Tensors that came from worker processes are kept, and each keeps a block of shared memory.

    ## Why it leaks
    A worker hands over a tensor by putting it into shared memory. The block lives as long as one
    tensor refers to it, with an open file for each. So kept batches fill /dev/shm, which is small
    in a container (64 MiB under Docker), and use up open files: `Too many open files`,
    `received 0 items of ancdata`, or a bus error in the worker.

    ## Example
    ```python
    for x, y in DataLoader(images, num_workers=4):
        labels.append(y)
    ```

    ## Use instead
    `labels.append(y.clone())`, which lies in ordinary memory and holds no file; of a large batch
    keep the part that is needed. What is kept still adds up: a number (`y.sum().item()`) does not.

    ## Not this rule when
    Less than half of what one item keeps is shared memory, or this process has put it there itself
    with `share_memory_()`: LS501.
    """
    came_from_another = any(
        part in frame.file
        for site in case.holding.sites
        for frame in site.frames
        for part in RECEIVERS
    )
    is_list_of_them = any(link.file.endswith(LIST_OF_THEM) for link in case.above)
    return is_list_of_them or (came_from_another and case.share_of("shared memory") >= SHARED_SHARE)
