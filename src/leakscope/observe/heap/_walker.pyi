from typing import Any

from leakscope.observe.heap.twin import Walked

layout_ok: bool
dicts_ok: bool
attributes_ok: bool
locals_ok: bool
functions_ok: bool
links_ok: bool

def walk(
    fd: int,
    extra: list[Any],
    wanted: tuple[type, ...],
    ndarray: type | None,
    with_sites: bool = False,
    /,
) -> Walked: ...
def thread_dicts() -> list[Any]: ...
def check_ndarray(array: Any, data_pointer: int, nd: int, base: Any, dtype: Any, /) -> bool: ...
def use_layouts(wanted: bool, /) -> None: ...
