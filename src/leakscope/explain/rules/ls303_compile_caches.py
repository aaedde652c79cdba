"""LS303: a registry of torch's compilers gets an entry with each new piece of code."""

from leakscope.explain.rule import Case, Weight, rule

COMPILERS = (
    "torch/_dynamo/",
    "torch/_functorch/",
    "torch/_inductor/",
    "torch/export/",
    "torch/fx/",
    "torch/jit/",
)
"""Folders whose modules and classes hold what was traced or compiled."""


@rule(
    "LS303",
    weight=Weight.HOLDER,
    fix="trace, script or compile once, before the loop, and call the result in it; where shapes "
    "differ, use `torch.compile(…, dynamic=True)` or pad to a few sizes",
)
def compile_caches(case: Case) -> bool:
    """A registry of torch's compilers gets an entry with each new piece of code.

    ## Why it leaks
    What `torch.compile`, `torch.jit` and `torch.fx` make is generated code, and they keep its text,
    guards and names for the whole process. A model or a lambda that is traced or compiled anew in
    each step adds its code each time.

    ## Example
    ```python
    for batch in loader:
        traced = torch.fx.symbolic_trace(model)
        traced(batch)
    ```

    ## Use instead
    Do it once before the loop. Compile a function that has a name rather than a new lambda. For
    inputs of many sizes: `torch.compile(model, dynamic=True)`, or pad to a few sizes.

    ## Not this rule when
    You keep the compiled modules in a container of your own: LS501. Growth in the first steps that
    ends is compiling itself, which is no leak.
    """
    root = case.above[0] if case.above else None
    return root is not None and any(folder in root.file for folder in COMPILERS)
