"""LS904: TensorFlow keeps a compiled kernel for every Keras variable that was ever made."""

from leakscope.explain.rule import Case, Weight, rule

_MAKES_VARIABLES = "/tensorflow/python/ops/gen_resource_variable_ops.py"


@rule(
    "LS904",
    weight=Weight.FRAMEWORK,
    blame="library",
    fix="keep one optimizer and one model and set their variables back, or call "
    "keras.backend.clear_session(), which empties TensorFlow's kernel cache",
)
def eager_kernel_cache(case: Case) -> bool:
    """TensorFlow keeps a compiled kernel for every Keras variable that was ever made.

    ## Why it leaks
    Making and updating a Keras variable compiles a kernel for that very variable, and the eager
    context keeps it in a cache when the variable is gone: 35 KB each, without any Python
    object. A layer that is built has two, an Adam two for each variable it steps.

    ## Example
    ```python
    for client in clients:
        optimizer = keras.optimizers.Adam(0.01)  # and its slots, for every client
        optimizer.apply(grads, variables)
    ```

    ## Use instead
    Keep one optimizer and zero its variables, keep one model and set its weights. Where new
    ones are needed, `keras.backend.clear_session()` empties this cache.

    ## Not this rule when
    Graphs of compiled functions pile up as well: LS902 is the larger part then.
    """
    if case.holding.kind != "native":
        return False
    frames = (frame for tally in case.holding.sites for frame in tally.frames)
    return any(frame.file.endswith(_MAKES_VARIABLES) for frame in frames)
