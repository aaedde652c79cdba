"""Ray: have the workers of a cluster watched, on whichever machine they run.

    ray.init(runtime_env=leakscope.ray_workers.runtime_env())

Under `leakscope run` with a Ray that the program itself starts this is not needed: its workers
inherit the environment. Workers of a cluster that was there before do not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from leakscope.agent.current import running_agent, start_for_run
from leakscope.api import new_directory, write_header
from leakscope.inject import BUDGET, RUN_DIR, STEPS_FROM
from leakscope.observe.guard import guarded

HOOK = "leakscope.ray_workers.watch_worker"


def runtime_env(out: str | None = None, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `ray.init`, `.options` and Ray Train's `worker_runtime_env` take.

    Args:
        out: folder of the recording, the same on every machine; by default that of the run that
            is being watched, or a new one under `.leakscope/`. On machines that do not share it,
            `leakscope merge` puts the folders together.
        base: a runtime environment of your own to add to.

    Raises:
        LeakscopeError: the folder cannot be written, or holds something already.
    """
    directory = out or os.environ.get(RUN_DIR)
    if directory is None or not os.path.exists(os.path.join(directory, "run.json")):
        directory = new_directory(directory, sys.argv[:1])
        write_header(directory, tuple(sys.orig_argv), {"watch": "ray"})
    told = {name: os.environ[name] for name in (STEPS_FROM, BUDGET) if name in os.environ}
    mine = dict(base or {})
    env_vars = {**mine.get("env_vars", {}), **told, RUN_DIR: os.path.abspath(directory)}
    return mine | {"env_vars": env_vars, "worker_process_setup_hook": HOOK}


def watch_worker() -> None:
    """Runs in every worker before its first task, and never keeps it from starting."""
    guarded(_watch, "ray worker", lambda gap: None)()


def _watch() -> None:
    directory = os.environ.get(RUN_DIR)
    if not directory:
        return
    if not os.path.exists(os.path.join(directory, "run.json")):
        os.makedirs(directory, exist_ok=True)
        write_header(directory, tuple(sys.orig_argv), {"watch": "ray"})
    start_for_run(directory)
    agent = running_agent()
    if agent is not None:
        agent.became("worker", f"ray worker {os.getpid()}")
