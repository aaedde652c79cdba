"""Role and name of a step as one number, so that arrays of them can be compared."""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import AnyArray, Numbers

_NAME_BITS = 32
_NAMES = (1 << _NAME_BITS) - 1


def label_of(roles: AnyArray, names: AnyArray) -> Numbers:
    """One number for each role and name number."""
    labels: Numbers = roles.astype(np.int64) << _NAME_BITS | names
    return labels


def roles_of(labels: Numbers) -> Numbers:
    roles: Numbers = labels >> _NAME_BITS
    return roles


def names_of(labels: Numbers) -> Numbers:
    names: Numbers = labels & _NAMES
    return names


def role_of(label: int) -> int:
    return label >> _NAME_BITS


def name_of(label: int) -> int:
    return label & _NAMES
