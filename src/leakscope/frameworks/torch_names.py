"""Names of the layers, parameters and buffers of PyTorch modules.

A module keeps them in three tables, and keys of tables are not written to a snapshot. These are
attributes to whoever reads the program, so an adapter says which is which. It reads dicts only:
there is no moment at which that could do harm.
"""

from __future__ import annotations

import sys
from typing import Any

from leakscope.observe.anatomy import dict_of, module_dict
from leakscope.observe.heap.edges import Extras
from leakscope.record.snapshot_file import EdgeRole

_TABLES = ("_modules", "_parameters", "_buffers")


class TorchNames:
    """The attributes of modules, in a snapshot."""

    name = "names in torch modules"

    def wanted(self) -> tuple[type, ...]:
        module = module_dict(sys.modules.get("torch.nn.modules.module")).get("Module")
        return () if module is None else (module,)

    def why_not_now(self) -> str:
        return ""

    def read(self, found: list[Any], extras: Extras) -> None:
        for module in found:
            namespace = dict_of(module) or {}
            tables: list[Any] = [namespace.get(table) for table in _TABLES]
            for table in tables:
                if issubclass(type(table), dict):
                    for name, value in list(dict.items(table)):
                        if type(name) is str and name.isidentifier() and value is not None:
                            extras.add_edge(id(module), id(value), EdgeRole.ATTRIBUTE, name)
