"""LS901: a `tf.function` is traced again and again, and keeps a graph for every signature."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS901",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="pass tensors instead of Python numbers, and give `input_signature` with None where a "
    "dimension varies (or `reduce_retracing=True`)",
)
def function_traced_again(case: Case) -> bool:
    """A `tf.function` is traced again and again, and keeps a graph for every signature.

    ## Why it leaks
    What counts as a signature is the shape and type of a tensor, and the value of anything
    else. A Python number that changes, or a shape that was not seen before, is traced anew, and
    the function keeps every graph: about 0.5 MB for ten operations.

    ## Example
    ```python
    @tf.function
    def update(x, rate): ...


    update(x, schedule(step))  # a Python float: a graph per value
    ```

    ## Use instead
    Pass `tf.constant(rate)`, or keep the value in a `tf.Variable`. For shapes:
    `input_signature=[tf.TensorSpec((None, 32), tf.float32)]`, `reduce_retracing=True`, or pad
    to a few lengths. TensorFlow warns of it on stderr too ("triggered tf.function retracing").

    ## Not this rule when
    The functions themselves are made anew and dropped: their graphs go with them, see LS090.
    The functions are kept in a container of yours: LS905.
    """
    return any(link.type == "FunctionCache" for link in case.above)
