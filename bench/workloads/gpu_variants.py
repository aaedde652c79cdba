"""A block of steps whenever it is asked for, under one of the ways to watch device memory."""

import sys
import time
from contextlib import nullcontext

import torch
from in_turns import _nobody_listening


def run(step, variant):
    """A line on stdin is a number of steps, and perhaps "deaf"; answered by wall seconds. The
    profiler is started for each block, and only its steps are timed."""
    if variant == "history":
        torch.cuda.memory._record_memory_history(enabled="all")
    for line in sys.stdin:
        steps, *deaf = line.split()
        around = nullcontext()
        if deaf:
            around = _nobody_listening()
        elif variant == "profiler":
            around = torch.profiler.profile(profile_memory=True, with_stack=True)
        with around:
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(int(steps)):
                step()
            torch.cuda.synchronize()
            took = time.perf_counter() - began
        print(took, flush=True)
