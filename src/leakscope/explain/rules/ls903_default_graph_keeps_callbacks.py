"""LS903: TensorFlow's default graph keeps every Python function that a dataset was made from."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS903",
    weight=Weight.FRAMEWORK,
    blame="library",
    fix="make the dataset once, pass arrays instead of a generator, or call "
    "keras.backend.clear_session() after each fit",
)
def default_graph_keeps_callbacks(case: Case) -> bool:
    """TensorFlow's default graph keeps every Python function that a dataset was made from.

    ## Why it leaks
    `Dataset.from_generator`, `tf.py_function`, and `fit` with a generator or a `PyDataset` put
    Python functions into a list of the outermost default graph, three for each dataset, and
    nothing takes them out. Each keeps what it captured: the data of every dataset that was ever
    made.

    ## Example
    ```python
    for patient in patients:
        model.fit(PatientData(patient))  # a PyDataset
    ```

    ## Use instead
    Pass arrays or `from_tensor_slices`, or make one dataset whose generator reads what is
    current. Or call `keras.backend.clear_session()` after each: here it does help.

    ## Not this rule when
    The dataset's iterators are kept by a list of yours: LS501.
    """
    return any(link.name == "_py_funcs_used_in_graph" for link in case.above)
