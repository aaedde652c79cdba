"""Provisional."""
from leakscope.observe.heap._walker import check_ndarray, thread_dicts, walk  # noqa: F401
KIND = "c"
