"""What every noun is built on."""

from __future__ import annotations

import msgspec


class Noun(msgspec.Struct, frozen=True, gc=False):
    """A frozen struct outside the collector's view."""


class Written(Noun, frozen=True, gc=False, omit_defaults=True):
    """Part of a recording, where what is not said takes no space."""
