"""The one agent of this process: who starts it, how it is found, what forks do to it."""

from __future__ import annotations

import os
import sys
from _thread import RLock

from leakscope.agent.agent import Agent
from leakscope.agent.importing import has_pooling_framework
from leakscope.agent.timer import FIRST_S, import_threading
from leakscope.observe.guard import guarded
from leakscope.observe.processes.process_role import follow_named_forks

_WITH_FRAMEWORK_S = 0.1
"""First tick in a program that has a framework: most of them step before, and then there is none.
TensorFlow and JAX take seconds to get going, so their ticks are so far apart at first, too."""

_WITH_TORCH_S = 0.02
"""So far apart are the first ticks with torch: a loop written without modules and optimizers may be
over in half a second, and five rows are not enough for two looks."""

_agent: Agent | None = None
_starting = RLock()
"""The bootstrap's thread and the import of torch may both be about to start the agent."""
_follows_forks = False
_follows_named_forks = False


def _follow_forks() -> None:
    """Once per process: what is registered here cannot be taken back, and must not pile up."""
    global _follows_forks
    if not _follows_forks:
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
        _follows_forks = True


def _before_fork() -> None:
    """Runs after the ticker's, which is registered later: from here on nobody opens a window."""
    windows = sys.modules.get("leakscope.observe.allocations.native_lines")
    if windows is not None:
        windows.stop_windows()
    _follow_named_forks()


def _after_fork() -> None:
    global _starting
    _starting = RLock()
    # Again: an agent that starts while the hooks before a fork are running has missed them.
    _follow_named_forks()
    if _agent is not None:
        _agent.after_fork()


def _follow_named_forks() -> None:
    global _follows_named_forks
    if not _follows_named_forks:
        _follows_named_forks = follow_named_forks(_after_named_fork)


def _after_named_fork() -> None:
    agent = running_agent()
    if agent is not None:
        agent.learn_role(agent)


def start_agent(directory: str, *, steps_from: str = "auto", budget: float = 0.01) -> Agent:
    """The agent of this process, started if there is none yet."""
    with _starting:
        agent = _start(directory, steps_from, budget)
        agent.arm(is_loaded=True)
    return agent


def _start(directory: str, steps_from: str, budget: float) -> Agent:
    global _agent
    if _agent is None or _agent.is_closed:
        agent = Agent(directory, steps_from=steps_from, budget=budget)
        agent.start()
        _follow_forks()
        _agent = agent  # only now: another thread may ask for it
    return _agent


def running_agent() -> Agent | None:
    return _agent if _agent is not None and not _agent.is_closed else None


def step() -> None:
    """Say that one step of the program is done; overrides every other way of counting steps."""
    agent = running_agent()
    if agent is None and (directory := os.environ.get("LEAKSCOPE_RUN_DIR")):
        # Under `leakscope run` in a program without a framework, the agent is not there yet.
        _start_late(directory)
        agent = running_agent()
    if agent is not None:
        agent.on_step("api")


def start_for_run(directory: str) -> None:
    """Start as `leakscope run` was told to; called by the bootstrap once torch is imported."""
    steps_from, budget = _settings()
    agent = start_agent(directory, steps_from=steps_from, budget=budget)
    pause_s = _WITH_FRAMEWORK_S if has_pooling_framework() else _WITH_TORCH_S
    agent.start_ticking(pause_s, after_s=_WITH_FRAMEWORK_S)


def start_by_clock(directory: str, main_thread: int) -> None:
    """The same in a program that has not imported torch by now; in the bootstrap's thread."""
    import_threading(main_thread)
    with _starting:
        agent = _start(directory, *_settings())
        agent.arm()
    agent.start_ticking(FIRST_S, after_s=FIRST_S)


def _settings() -> tuple[str, float]:
    steps_from = os.environ.get("LEAKSCOPE_STEPS_FROM", "auto")
    return steps_from, float(os.environ.get("LEAKSCOPE_BUDGET", "0.01"))


_start_late = guarded(start_for_run, "agent", lambda gap: None)


def stop_agent(agent: Agent) -> None:
    """Take every hook back and close the file; what was recorded stays."""
    agent.stop()
