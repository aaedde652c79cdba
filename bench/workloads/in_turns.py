"""A workload runs a block of steps whenever it is asked to, and says how long that took.

`bench/cost.py` keeps the variants of a workload alive side by side and lets each run a block in
turn, so that a machine that is slower for a second is slower for all of them. Where even that is
too coarse, because two processes of the same program differ by some percent for as long as they
live, it asks a watched one to run every other block deaf: without a hook of leakscope in place.
"""

import gc
import sys
import time
from contextlib import contextmanager


def run_in_turns(step):
    """A line on stdin is a number of steps to make, and perhaps "deaf"; answered by wall and CPU
    seconds."""
    while True:
        began_ns = time.monotonic_ns()
        line = sys.stdin.readline()
        if not line:
            break
        _earn_nothing_for(time.monotonic_ns() - began_ns)
        steps, *deaf = line.split()
        if deaf:
            with _nobody_listening():
                _run_block(step, int(steps))
        else:
            _run_block(step, int(steps))


def _run_block(step, steps):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


def _agent():
    """leakscope's, where it watches this process."""
    inside = sys.modules.get("leakscope.agent.current")
    return inside.running_agent() if inside is not None else None


def _earn_nothing_for(waited_ns):
    """Looks are paid for with a share of the time that passes: of this program's, not of that in
    which others had their turn."""
    agent = _agent()
    if agent is not None:
        agent.looks.budget._started_ns += waited_ns


@contextmanager
def _nobody_listening():
    """leakscope's hooks taken out of the frameworks, their classes and the collector, and put
    back."""
    adapters = _agent()._arming._armed
    optimizer = sys.modules.get("torch.optim.optimizer")
    hooks = ()
    if optimizer is not None:
        hooks = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
    taken = [dict(each) for each in hooks]
    callbacks = gc.callbacks[:]
    known = [tap for one in adapters for tap in (*one._taps, *getattr(one, "_weaker_taps", ()))]
    taps = [tap for tap in known if tap._owner().__dict__.get(tap._name) is tap]
    gc.callbacks.clear()
    for each in hooks:
        each.clear()
    for tap in taps:
        tap.remove()
    yield
    for tap in taps:
        tap.install()
    for each, content in zip(hooks, taken, strict=True):
        each.update(content)
    gc.callbacks[:] = callbacks
