"""LS501: a list, dict, set or deque gets entries with every step and loses none."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS501",
    weight=Weight.ANYTHING,
    fix="remove entries that are done with, bound the container (`deque(maxlen=…)`, an "
    "LRU), or write them out instead of keeping them",
)
def container_grows(case: Case) -> bool:
    """A list, dict, set or deque gets entries with every step and loses none.

    ## Why it leaks
    Something is added in every step and nothing is taken out.

    ## Example
    ```python
    self.seen[batch.id] = features
    ```

    ## Use instead
    Remove what is done with, bound the container (`deque(maxlen=1000)`, an LRU), or write the
    entries to disk.

    ## Not this rule when
    What an item keeps has a number of its own: a graph (LS101), a traceback (LS504), a view
    (LS509); or when the container is a cache's (LS502) or an iterator's (LS205). A container that
    says it is bounded is told under this number with its bound, and does not make the verdict a
    LEAK.
    """
    return True
