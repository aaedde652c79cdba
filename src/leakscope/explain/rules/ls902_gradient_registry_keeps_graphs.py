"""LS902: TensorFlow's gradient registry keeps the graph of every training function."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS902",
    weight=Weight.FRAMEWORK,
    blame="library",
    fix="build the model once and set its weights and optimizer variables back for each trial "
    "(clear_session() does not reach the registry)",
)
def gradient_registry_keeps_graphs(case: Case) -> bool:
    """TensorFlow's gradient registry keeps the graph of every training function that was compiled.

    ## Why it leaks
    An optimizer step in a compiled training function goes through `tf.custom_gradient`, which
    leaves a closure in a global registry (`ops.gradient_registry`), and the closure keeps the
    function's whole graph: 8,000 Python objects and some MB for each model that is compiled and
    fitted. Neither `del model` nor `keras.backend.clear_session()` reaches the registry
    (tensorflow#97697; in TensorFlow 2.21 and before).

    ## Example
    ```python
    for rate in rates:
        model = build(rate)
        model.fit(x, y)
        del model
        keras.backend.clear_session()  # gives back a tenth of it
    ```

    ## Use instead
    Build and compile once; for each trial set the weights back, zero the optimizer's variables
    and assign the learning rate. Or train each model in a process of its own. Or, where models
    must differ, blank what the closures captured after each trial, and call `clear_session()`:
    see docs/tensorflow-jax.md, which has the function. `run_eagerly=True` has no graph to keep.

    ## Not this rule when
    The models themselves are kept by a list of yours: that is LS905, and this comes on top of
    it.
    """
    return any(
        link.type in ("Registry", "TensorFlow's gradient registry")
        and link.name == "gradient_registry"
        for link in case.above
    )
