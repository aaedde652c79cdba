"""LS502: a cache around a function keeps every argument and every result."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS502",
    weight=Weight.HOLDER,
    fix="the cache keeps every argument and result (on a method: `self`, and all it "
    "holds); bound it with maxsize, or cache on the instance or on plain values",
)
def lru_cache_keeps_arguments(case: Case) -> bool:
    """A cache around a function keeps every argument and every result.

    ## Why it leaks
    The cache keeps every argument and every result. On a method `self` is an argument: the
    object, with all it holds, lives as long as the class.

    ## Example
    ```python
    class Encoder:
        @functools.cache
        def anchors(self, size): ...
    ```

    ## Use instead
    `lru_cache(maxsize=…)`, a cache on the instance (`self._anchors = {}`), or a function of plain
    values such as the size alone.

    ## Not this rule when
    The cache is a dict of your own: LS501. `lru_cache` without a size keeps 128 results and then
    stops: it is told with that bound.
    """
    return any(link.kind == "cache" for link in case.above)
