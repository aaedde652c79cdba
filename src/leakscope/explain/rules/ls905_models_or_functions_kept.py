"""LS905: models, their histories or compiled functions are kept, each with its graphs."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS905",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="keep the numbers (`history.history`, a score) or the weights of the best, not the models, "
    "histories or compiled functions themselves",
)
def models_or_functions_kept(case: Case) -> bool:
    """Models, their histories or compiled functions are kept, each with its graphs.

    ## Why it leaks
    A Keras model that was fitted has its weights, two slots of the optimizer for each, and the
    graphs of its training function: ten times its weights for a small one. A `History` keeps
    its model too (`history.model`), and so does a callback.

    ## Example
    ```python
    trials.append(model)
    histories.append(model.fit(x, y))  # each has .model
    ```

    ## Use instead
    Keep `model.get_weights()` of the best, or `history.history`, which is a dict of numbers.
    Save to disk what is needed later.

    ## Not this rule when
    It still grows when nothing is kept: the gradient registry, LS902, keeps the graphs by
    itself.
    """
    is_own = case.suspect.keeper is not None or case.suspect.named is not None
    has_graphs = any(
        case.holding.opaque.get(name, 0.0) > 0 for name in ("FuncGraph", "Sequential", "Functional")
    ) or any(link.type in ("History", "Sequential", "Functional") for link in case.below)
    is_library = any(link.type in ("FunctionCache", "Registry", "Graph") for link in case.above)
    # PyTorch has a Sequential too, whose layers lie in `_modules`.
    is_of_torch = any(link.via in ("._modules", "._parameters") for link in case.below)
    is_kept_by_name = is_own and not is_library and case.holding.kind == "container"
    return is_kept_by_name and has_graphs and not is_of_torch
