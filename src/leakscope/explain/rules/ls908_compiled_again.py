"""LS908: JAX compiles a function again and again, and keeps every executable."""

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.rules.ls909_loop_body_made_anew import is_loop


@rule(
    "LS908",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="pass changing values as ordinary arguments instead of static ones and pad shapes to a few "
    "sizes, or call jax.clear_caches() now and then",
)
def compiled_again(case: Case) -> bool:
    """JAX compiles a function again and again, and keeps every executable.

    ## Why it leaks
    A jitted function has one executable for each shape of its arguments and each value of its
    static ones: 1.5 to 3 MB each on the CPU. The caches are bounded by entries, in the
    thousands, not by bytes.

    ## Example
    ```python
    @jax.jit(static_argnames="strength")
    def smooth(signal, strength): ...


    smooth(signal, 0.1 + 0.001 * step)
    ```

    ## Use instead
    Pass values that change as ordinary arguments. Pad shapes to a few sizes. Where a new
    program is needed each time, `jax.clear_caches()` now and then.

    ## Not this rule when
    The jitted functions are kept by a container of yours: LS910. Each function is compiled
    once, at the start: that is warm-up.
    """
    return case.holding.kind == "pile" and not is_loop(case)
