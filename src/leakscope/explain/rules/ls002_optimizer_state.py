"""LS002: the first optimizer step creates the optimizer's state."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE


@harmless("LS002")
def optimizer_state(case: RunCase) -> str | None:
    """The first optimizer step creates the optimizer's state, and memory stays that much higher.

    ## Why it looks like a leak
    Adam keeps two values for each parameter, SGD with momentum one. They do not exist before the
    first `step()`: memory goes up by one or two times the size of the model, and stays there.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()  # now there is state: twice the parameters
    ```

    ## What to do
    Nothing; it happens once. Where it does not fit: an optimizer with less state (SGD, Adafactor,
    8-bit Adam), or state that is spread over ranks.

    ## Not this rule when
    The state goes on growing after the first steps: a new optimizer with every epoch, parameters
    that are added. That is judged like any growth.
    """
    series = case.series(IN_USE)
    if series is None or case.run.axis.source != "optimizer" or series.steps[:1] != (0.0,):
        return None
    after = next((v for s, v in zip(series.steps, series.values, strict=True) if s >= 1), None)
    if after is None or after - series.values[0] < case.worth_saying:
        return None
    state, parameters = case.roles.get("optimizer state", 0), case.roles.get("parameter", 0)
    if state < case.worth_saying:
        return None
    said = f", {state / parameters:.1f} times the parameters" if parameters else ""
    return (
        f"The first optimizer step added {text.size(after - series.values[0])}; optimizer state is "
        f"{text.size(state)} in all{said}. That happens once; it is not a leak."
    )
