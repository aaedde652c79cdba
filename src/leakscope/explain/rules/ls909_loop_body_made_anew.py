"""LS909: a loop of `jax.lax` gets a body function that is made anew in each call."""

from leakscope.explain.rule import Case, Weight, rule

_LOOPS = ("jit(scan)", "jit(while)", "jit(while_loop)", "jit(cond)", "jit(map)", "jit(_map)")


def is_loop(case: Case) -> bool:
    """Is it a loop of `jax.lax` that was compiled, and not a function of the program?"""
    return case.holding.kind == "pile" and case.holding.path[0].name in _LOOPS


@rule(
    "LS909",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="define the body function once and pass what changes in the carry, or put the call under "
    "jax.jit",
)
def loop_body_made_anew(case: Case) -> bool:
    """A loop of `jax.lax` gets a body function that is made anew in each call.

    ## Why it leaks
    `lax.scan`, `while_loop`, `cond` and `map` outside of `jit` compile their body, and look it
    up by the function object. A lambda or an inner function is a new one each time: the loop is
    compiled again, and its executable stays although the function is gone.

    ## Example
    ```python
    def track(self, seen):
        return jax.lax.scan(lambda state, x: step(self.gain, state, x), start, seen)
    ```

    ## Use instead
    Define the body once, at the top of the module, and pass what changes in the carry; or put
    the whole call under `jax.jit`.

    ## Not this rule when
    The body is the same function and shapes or static values change: LS908.
    """
    return is_loop(case)
