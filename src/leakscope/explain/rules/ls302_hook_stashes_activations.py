"""LS302: a hook stores what passes through a layer, at every pass."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS302",
    weight=Weight.HOLDER,
    fix="the hook runs at every pass: let it overwrite the last value "
    "(`latest[name] = output.detach()`), or clear what it has stored after each step",
)
def hook_stashes_activations(case: Case) -> bool:
    """A hook stores what passes through a layer, at every pass, and nobody takes it away.

    ## Why it leaks
    A hook runs at every forward or backward pass, in evaluation too. If it appends, its list has
    an activation or a gradient of every pass there was.

    ## Example
    ```python
    def hook(module, inputs, output):
        captured.append(output.detach())


    layer.register_forward_hook(hook)
    ```

    ## Use instead
    Overwrite (`latest[name] = output.detach()`), or read and `clear()` the list in each step. Keep
    a number (`output.abs().mean().item()`) where that is enough. Remove the hook when it is no
    longer wanted.

    ## Not this rule when
    The hooks themselves pile up: LS301. Or the storing function is not registered in the files of
    the program, so that nothing shows it is a hook: LS501.
    """
    return case.suspect.is_kept_in_hook
