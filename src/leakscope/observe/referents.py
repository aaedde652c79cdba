"""What objects refer to, asked of the collector, but not of modules.

In Python 3.12 the module `_asyncio` names to the collector the iterators that it has freed and
keeps for reuse. `gc.get_referents` puts them into its list, and when the list goes they are freed a
second time: the chain of free ones leads back to itself, and whoever walks it next walks for ever
(3.12.1, after one `await` of a future). What a module has is in its dict, which is an object like
any.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_not
from types import ModuleType
from typing import Any


def referents_of(*things: Any) -> list[Any]:
    """As `gc.get_referents`; a module has none."""
    return gc.get_referents(*without_modules(things))


def without_modules(things: Sequence[Any]) -> list[Any]:
    """Picked by C alone."""
    return list(compress(things, map(is_not, map(type, things), repeat(ModuleType))))
