"""LS001: memory rises at first, ever more slowly, and has come to rest."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE
from leakscope.model import Shape

_OWN_REASON = 0.5
"""Share of the rise: if optimizer state is more of it than this, LS002 has told it already."""


@harmless("LS001")
def warm_up(case: RunCase) -> str | None:
    """Memory rises at the start of a run, ever more slowly, and has come to rest.

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
    The rise went on to the end, or stopped all at once as something does that is full: LS007.
    """
    rise = case.settled(IN_USE, Shape.WARM_UP)
    if rise is None or not case.is_steady or not rise.steps_at:
        return None
    if case.roles.get("optimizer state", 0) > _OWN_REASON * rise.size_bytes:
        return None
    return (
        f"Live memory rose by {text.size(rise.size_bytes)} until about step "
        f"{text.count(round(rise.steps_at[-1]))} and has come to rest since: warm-up."
    )
