"""LS201: python objects of a data set are copied page by page in every forked worker."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS201",
    weight=Weight.CAUSE,
    fix="hold the records in one NumPy array, tensor or bytes buffer instead of Python "
    "objects: reading an object writes its reference count, and the page is copied "
    "in every worker",
)
def python_objects_in_forked_dataset(case: Case) -> bool:
    """Python objects of a data set are copied page by page in every forked worker.

    ## Why it leaks
    A forked worker shares the pages of its parent. Reading a Python object writes its reference
    count, and the page is copied: the worker's private memory grows although it allocates
    nothing. It ends when every page has been copied, in each worker.

    ## Example
    ```python
    class Images(Dataset):
        def __init__(self, records):
            self.records = list(records)  # millions of small objects
    ```

    ## Use instead
    One NumPy array, tensor or buffer of bytes with an array of offsets. It is one object, and its
    data has no reference counts.

    ## Not this rule when
    The worker's own memory in use grows: then it keeps something, and what that is is told under
    another number. Nor below 5,000 objects.
    """
    return case.holding.kind == "shared-pages"
