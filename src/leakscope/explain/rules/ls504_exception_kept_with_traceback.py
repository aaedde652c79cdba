"""LS504: exceptions are kept with their tracebacks, and so with the frames they passed."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS504",
    weight=Weight.HOLDER,
    fix="keep `str(error)`, or `error.with_traceback(None)`: a traceback holds the "
    "frames, and they hold their locals",
)
def exception_kept_with_traceback(case: Case) -> bool:
    """Exceptions are kept with their tracebacks, and so with the frames they passed.

    ## Why it leaks
    An exception has its traceback, the traceback has the frames, and the frames have their
    locals: the batch, the activations, the loss.

    ## Example
    ```python
    except RuntimeError as error:
        failed.append(error)
    ```

    ## Use instead
    `failed.append(str(error))`, or `error.with_traceback(None)`.

    ## Not this rule when
    What weighs most in an exception is not behind its traceback, such as a tensor in its `args`:
    LS501.
    """
    return any("traceback" in link.via or link.type == "traceback" for link in case.below)
