"""LS513: a weak registry or a finalizer holds, by a way round, what it was not to hold."""

from leakscope.explain.rule import Case, Weight, rule

WEAK = ("WeakKeyDictionary", "WeakValueDictionary", "WeakSet")


@rule(
    "LS513",
    weight=Weight.HOLDER,
    fix="give the finalizer, or the value of the weak dict, nothing that leads back to the object: "
    "a static function with plain arguments instead of a bound method, a copy instead of the "
    "object itself",
)
def finalizer_or_weak_registry(case: Case) -> bool:
    """A finalizer or a weak dict holds, by a way round, the object that it was not to hold.

    ## Why it leaks
    `weakref.finalize(obj, function)` keeps the function and its arguments until the object dies.
    If they lead to the object, such as its own bound method, it never dies. A
    `WeakKeyDictionary` keeps its values until the key dies: a value that refers to its key keeps
    it for ever.

    ## Example
    ```python
    weakref.finalize(self, self.release)  # the method keeps self
    cache[module] = Statistics(module)  # the value keeps its key
    ```

    ## Use instead
    `weakref.finalize(self, release_handle, self.handle)` with a function that does not need the
    object. In the value, a weak reference to the key or plain figures of it.

    ## Not this rule when
    The table has strong keys, as a dict does: LS501.
    """
    is_finalizer = any(
        link.name == "_registry" and link.file.endswith("/weakref.py") for link in case.above
    )
    return is_finalizer or any(link.type in WEAK for link in case.above)
