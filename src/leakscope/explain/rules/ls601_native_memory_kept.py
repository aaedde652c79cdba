"""LS601: memory that no Python object owns is never freed."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS601",
    weight=Weight.CAUSE,
    fix="no Python object owns this memory: free it where the native code is done with "
    "it, or update the library that makes it",
)
def native_memory_kept(case: Case) -> bool:
    """Memory that no Python object owns is never freed.

    ## Why it leaks
    No Python object owns the memory: a `malloc` through ctypes, a handle of a library that was
    never closed, a leak in an extension.

    ## Example
    ```python
    buffer = libc.malloc(size)  # and no libc.free(buffer)
    ```

    ## Use instead
    Free it where the native code is done with it (`try … finally`, a context manager), close the
    handle, or update the library.

    ## Not this rule when
    Python objects account for half of the growth: native memory is then not looked for. The line
    told is that of your code that called into the library; the line in C is not known.
    """
    return case.holding.kind == "native"
