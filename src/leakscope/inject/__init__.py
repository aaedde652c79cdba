"""How the agent gets into a process and its children: a folder on PYTHONPATH, and environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

RUN_DIR = "LEAKSCOPE_RUN_DIR"
PACKAGE_PATH = "LEAKSCOPE_PACKAGE_PATH"
STEPS_FROM = "LEAKSCOPE_STEPS_FROM"
BUDGET = "LEAKSCOPE_BUDGET"
COLLECT = "LEAKSCOPE_COLLECT"
"""Set by `leakscope bisect` only: the agent collects all garbage before its rows."""
START_METHOD = "LEAKSCOPE_START_METHOD"
"""Set by `leakscope bisect` only, for its own sitecustomize."""

BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")


def environment_for(
    directory: str,
    *,
    steps_from: str = "auto",
    budget: float = 0.01,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment in which every Python below finds the agent."""
    environment = dict(os.environ if base is None else base)
    old = environment.get("PYTHONPATH")
    # An empty PYTHONPATH means none; joining it would put the working directory on the path.
    environment["PYTHONPATH"] = BOOTSTRAP + (os.pathsep + old if old else "")
    environment[RUN_DIR] = os.path.abspath(directory)
    environment[PACKAGE_PATH] = os.path.dirname(os.path.dirname(os.path.dirname(BOOTSTRAP)))
    # By the clock is how a run is read; the rows of the steps there are serve it too.
    environment[STEPS_FROM] = "auto" if steps_from == "time" else steps_from
    environment[BUDGET] = f"{budget:g}"
    return environment
