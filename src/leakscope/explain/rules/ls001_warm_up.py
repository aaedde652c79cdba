"""LS001: memory rises at first and has come to rest."""

from leakscope import text
from leakscope.explain.rule import FIRST_STEPS, RunCase, harmless
from leakscope.judge.series import HELD, IN_USE
from leakscope.model import Shape

_EARLY = 0.2
"""Share of the run: rises that were over by then are warm-up whatever their form."""
_TOO_SHORT = 0.05
"""What was over by then is the first steps, which nobody takes for a leak: a share of the run, and
so many, for which of them has the row that shows it is a matter of chance."""
_LATEST = 0.5
"""A curve that settled later than this might as well be a leak among steps of many sizes."""
_OWN_REASON = 0.5
"""Share of the rise: if gradients and optimizer state are more of it than this, they are the reason
and LS002 tells of them."""
_OF_HELD = 0.05
"""Of what the allocator came to hold meanwhile: why resident memory rose by 45 MiB is not answered
by 1 MiB of buffers. Between two programs, at 0.025 and 0.17 or more; nothing else chose it."""


@harmless("LS001")
def warm_up(case: RunCase) -> str | None:
    """Memory rises at the start of a run and has come to rest.

    ## Why it looks like a leak
    The first steps meet everything for the first time: kernels are compiled, buffers are made for
    each new shape, libraries load their parts. A look at the first minutes shows a rise.

    ## Example
    ```python
    model = torch.compile(model)  # the first steps compile, the others run
    ```

    ## What to do
    Nothing. Judge memory after the warm-up: leakscope leaves out the first third of a run.

    ## Not this rule when
    The rise went on to the end, or past the first fifth of the run and then stopped all at once, as
    something does that is full: LS007.
    """
    rise = case.settled(IN_USE, Shape.WARM_UP, Shape.STEP, Shape.FILLING, Shape.HIGH_WATER)
    if rise is None or not case.is_steady or not case.is_at_rest(rise):
        return None
    latest = _LATEST if rise.shape is Shape.WARM_UP else _EARLY
    steps = case.run.axis.last_step
    if not max(_TOO_SHORT * steps, FIRST_STEPS) <= rise.steps_at[-1] <= latest * steps:
        return None
    if case.is_of_first_steps("in_use_bytes"):
        return None
    held = case.series(HELD)
    if held is not None and rise.size_bytes < _OF_HELD * (held.values[-1] - held.values[0]):
        return None
    made = case.roles.get("gradient", 0) + case.roles.get("optimizer state", 0)
    if made > _OWN_REASON * rise.size_bytes:
        return None
    return (
        f"Live memory rose by {text.size(rise.size_bytes)} until about step "
        f"{text.count(round(rise.steps_at[-1]))} and has come to rest since: warm-up."
    )
