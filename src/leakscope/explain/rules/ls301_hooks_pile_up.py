"""LS301: hooks are registered again and again, and none is removed."""

from leakscope.explain.rule import Case, Weight, rule

HOOKS = frozenset(
    f"_{prefix}{name}"
    for prefix in ("", "global_", "optimizer_")
    for name in (
        "backward_hooks",
        "backward_pre_hooks",
        "forward_hooks",
        "forward_hooks_always_called",
        "forward_hooks_with_kwargs",
        "forward_pre_hooks",
        "forward_pre_hooks_with_kwargs",
        "load_state_dict_post_hooks",
        "load_state_dict_pre_hooks",
        "post_accumulate_grad_hooks",
        "state_dict_hooks",
        "state_dict_post_hooks",
        "state_dict_pre_hooks",
        "step_post_hooks",
        "step_pre_hooks",
    )
)
"""Where modules, tensors and optimizers of torch 2.13 have their hooks."""


@rule(
    "LS301",
    weight=Weight.HOLDER,
    fix="register the hook once, outside the loop, or keep the handle that `register_…hook` "
    "returns and call `handle.remove()` when you are done with it",
)
def hooks_pile_up(case: Case) -> bool:
    """Hooks are registered again and again, and none is removed.

    ## Why it leaks
    A module, tensor or optimizer keeps every hook that is registered, with all that the hook
    refers to: its object, the variables of its closure. Registering the same function again adds
    it again. The step gets slower too, because all of them run.

    ## Example
    ```python
    for batch in loader:
        layer.register_forward_hook(probe.remember)
    ```

    ## Use instead
    Register once before the loop. Or, for a hook that is needed for a while:
    ```python
    handle = layer.register_forward_hook(probe.remember)
    try:
        model(batch)
    finally:
        handle.remove()
    ```

    ## Not this rule when
    There is one hook, and what it stores piles up: LS302.
    """
    if not case.above:
        return False
    grows = case.above[-1]
    holder = case.above[-2].type if len(case.above) > 1 else ""
    # A tensor has its hooks in C++, where they have no name.
    is_of_tensor = grows.type == "OrderedDict" and holder.startswith(("Tensor", "Parameter"))
    return grows.name in HOOKS or (is_of_tensor and case.holding.kind == "container")
