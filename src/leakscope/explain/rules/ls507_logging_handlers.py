"""LS507: log records or handlers pile up."""

from leakscope.explain.rule import Case, Weight, rule

LOGGING = ("/logging/__init__.py", "/logging/handlers.py")
_PARTS = (".args", ".exc_info", ".msg")
"""Of a record of the standard library; a class of the program's may have the same name."""


@rule(
    "LS507",
    weight=Weight.HOLDER,
    fix="log text and numbers (`loss.item()`), let the handler write or drop its records, and add "
    "a handler once, not in every call",
)
def logging_handlers(case: Case) -> bool:
    """Log records or handlers pile up.

    ## Why it leaks
    A log record has its arguments as they were, tensors too. A handler that collects records, or a
    `MemoryHandler` that nothing flushes, keeps them all. A logger keeps every handler that is
    added to it, and `getLogger(name)` keeps a logger for every name there ever was.

    ## Example
    ```python
    class Collect(logging.Handler):
        def emit(self, record):
            self.records.append(record)
    ```

    ## Use instead
    Keep `self.format(record)` of the last few (`deque(maxlen=1000)`), give a `MemoryHandler` its
    target and call `flush()`. Add handlers where the program starts; use one logger per module.

    ## Not this rule when
    Rows of your own are collected without `logging`: LS501.
    """
    is_logger = any(link.via.startswith("logger ") for link in case.above)
    is_logging = any(link.file.endswith(LOGGING) for link in case.above)
    is_record = case.holding.item == "LogRecord" and (
        any(link.via in _PARTS for link in case.below)
        or any(frame.file.endswith(LOGGING) for site in case.holding.sites for frame in site.frames)
    )
    return is_logger or is_logging or is_record
