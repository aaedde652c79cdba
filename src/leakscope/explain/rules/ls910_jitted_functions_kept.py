"""LS910: jitted functions are kept, each with its executables and the arrays it closes over."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS910",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="jit one function and pass the arrays as arguments, instead of keeping a jitted closure "
    "for each",
)
def jitted_functions_kept(case: Case) -> bool:
    """Jitted functions are kept, each with its executables and the arrays it closes over.

    ## Why it leaks
    A jitted function that is dropped gives its executables back. One that is kept does not: a
    closure over an array has it built into its program as a constant, beside the array itself.

    ## Example
    ```python
    self.scorers[user] = jax.jit(lambda x: x @ weights)
    ```

    ## Use instead
    One jitted function that gets the weights as an argument.

    ## Not this rule when
    The functions are dropped, and it is compiled again for each: LS908.
    """
    return case.holding.opaque.get("PjitFunction", 0.0) > 0
