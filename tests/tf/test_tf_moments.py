"""Reading edges at any moment changes nothing that the program computes, and never hangs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from running import PROGRAMS, run_plain

_TIMES = os.environ.get("TF_MOMENTS_TIMES", "2")
_ASYNCHRONOUS = "operations run asynchronously"
_RECORDING = "this thread is recording operations"

_MOMENTS = {
    "tf_tracing": {"trace", "branch", "loop", "init_scope", "Keras call", "py_func", "jit_compile"},
    "tf_callbacks": {
        "py_function",
        "from_generator",
        "map, py_function",
        "replica",
        "two tapes on",
    },
    "tf_half_made": {"conversion", "another thread converts", "pending"},
    "jax_moments": {"jit", "scan", "pmap", "pure_callback", "pending, argument donated", "thread"},
}
"""Some of the moments of each program, by the words it calls them by."""


@pytest.mark.parametrize("name", _MOMENTS)
def test_a_program_that_is_read_at_every_moment_computes_the_same(
    name: str, tmp_path: Path
) -> None:
    program = PROGRAMS / "tf_moments" / f"{name}.py"
    seen = {}
    for mode in ("bare", "asked"):
        env = {"TF_MOMENTS": mode, "TIMES": _TIMES, "TF_CPP_MIN_LOG_LEVEL": "3"}
        seen[mode] = run_plain([program], tmp_path, env=env)
        assert seen[mode].status == 0, seen[mode].seen
    assert seen["asked"].stdout == seen["bare"].stdout
    told = re.findall(r"^\d+ (.+?): (\w+): (.+)$", seen["asked"].stderr.decode(), re.MULTILINE)
    assert {where for where, _, what in told if what == "read"} >= _MOMENTS[name]
    reasons = {what for _, _, what in told if what != "read"}
    assert all(_ASYNCHRONOUS in why or _RECORDING in why for why in reasons), reasons
    is_asynchronous = {where for where, _, what in told if _ASYNCHRONOUS in what}
    assert is_asynchronous <= {"pending", "operations pending"}
