"""LS907: tensors of TensorFlow or arrays of JAX are kept, step after step."""

from leakscope.explain.rule import Case, Weight, rule

_ARRAYS = ("EagerTensor", "ArrayImpl", "ResourceVariable")
_MOST = 0.5


@rule(
    "LS907",
    weight=Weight.FRAMEWORK,
    blame="your-code",
    fix="keep numbers or a running average instead of the arrays of every step, or write them out",
)
def device_arrays_kept(case: Case) -> bool:
    """Tensors of TensorFlow or arrays of JAX are kept, step after step.

    ## Why it leaks
    An eager tensor or a JAX array is its memory: features, predictions, or the parameters
    before each update (JAX makes new ones in each step) stay for as long as a container has
    them. No graph hangs on them, unlike in PyTorch.

    ## Example
    ```python
    self.params = update(self.params, batch)
    self.history.append(self.params)
    ```

    ## Use instead
    Keep a number (`float(loss)`), a running average, or every hundredth copy; write the rest to
    disk.

    ## Not this rule when
    Whole models are kept: LS905. Compiled functions are: LS910.
    """
    types = [case.holding.item, *(link.type for link in case.below)]
    is_array = any(one.partition(" ")[0] in _ARRAYS for one in types)
    return is_array and case.share_of("tensors") > _MOST
