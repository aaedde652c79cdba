"""LS091: TensorFlow's pool keeps what it took for the largest moment."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE, RSS
from leakscope.model import Shape

_WORTH_SAYING = 16 << 20
_SHAPES = (Shape.STEP, Shape.HIGH_WATER, Shape.FILLING, Shape.WARM_UP)


@harmless("LS091")
def pool_of_tensorflow(case: RunCase) -> str | None:
    """TensorFlow's own pool on the CPU keeps what it took for the largest moment.

    ## Why it looks like a leak
    With oneDNN on, as it is by default on a processor with AVX-512, TensorFlow takes regions that
    double in size and never gives one back: `malloc_trim` cannot reach them, another allocator does
    not change it. After one large request resident memory stays that high.

    ## Example
    ```python
    index.nearest(forty_thousand_queries)  # 300 MB for a moment, and resident from then on
    ```

    ## What to do
    Nothing, if it fits: the pool is used again. Work on large inputs in parts, or set
    `TF_ENABLE_ONEDNN_OPTS=0`, with which freed memory goes back.

    ## Not this rule when
    It goes up further with the steps: then something is kept.
    """
    if not case.run.recording.pool_of(case.lead) or not case.is_steady:
        return None
    rises = [
        one
        for metric in (IN_USE, RSS)
        if (one := case.settled(metric, *_SHAPES)) is not None and one.size_bytes >= _WORTH_SAYING
    ]
    if not rises:
        return None
    largest = max(rises, key=lambda one: one.size_bytes)
    return (
        f"Resident memory rose by {text.size(largest.size_bytes)} and stayed there. TensorFlow "
        "keeps what it took for its largest moment in a pool (oneDNN) and uses it again; "
        "TF_ENABLE_ONEDNN_OPTS=0 would give it back."
    )
