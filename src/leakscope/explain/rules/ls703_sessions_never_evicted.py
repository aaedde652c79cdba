"""LS703: a table of sessions or requests gets entries and loses none."""

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import only_runs_forward

_TABLES = frozenset({"dict", "defaultdict", "OrderedDict"})
_RECORDS = frozenset({"dict", "list", "deque", "set", "defaultdict", "OrderedDict"})
_VALUES = frozenset(
    {"str", "bytes", "int", "float", "bool", "complex", "NoneType", "tuple", "frozenset", "ndarray",
     "Tensor", "Parameter", "bytearray", "function", "class", "module", "method"}
)  # fmt: skip


@rule(
    "LS703",
    weight=Weight.HOLDER,
    fix="delete the entry when its session or request is over (`table.pop(key, None)` in a "
    "`finally`), and bound the table by number and by age for those that never end",
)
def sessions_never_evicted(case: Case) -> bool:
    """A table of sessions, requests or users gets an entry for each and loses none.

    ## Why it leaks
    A server notes each request or session under its key. Entries that nobody takes out when it is
    over stay: the state of a conversation, a cache of keys and values, the payload of a request.

    ## Example
    ```python
    self.sessions[request.user] = Session(cache=[])
    ```

    ## Use instead
    `self.sessions.pop(request.user, None)` when it is over, in a `finally`. For those that never
    end: drop the oldest beyond a number (`OrderedDict.popitem(last=False)`), or after some minutes.

    ## Not this rule when
    Something trains. No statement of the program stores the entries, so that it is a library's own
    table: LS501. The entries are plain values, tensors or tuples of them: that is a cache of
    results (LS702, LS501). Results carry graphs: LS701.
    """
    grows = case.above[-1].type if case.above else ""
    return (
        case.holding.kind == "container"
        and grows in _TABLES
        and _is_record(case.holding.item)
        and case.suspect.keeper is not None
        and only_runs_forward(case)
    )


def _is_record(item: str) -> bool:
    """Something that lives and changes: an object of a class, or a container."""
    name = item.split(" ", 1)[0]
    return name in _RECORDS or (name not in _VALUES and name.isidentifier())
