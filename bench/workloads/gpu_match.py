"""For how many bytes in use a role and a holder are found, at three moments of a training step."""

import json
import sys
import time

import torch
from gpu_transformer import BATCH, LENGTH, WIDTH, build

from leakscope.observe.devices import CudaDoor
from leakscope.observe.occupants import look_at_device

DOOR = CudaDoor(torch)
model, optimizer = build()


def look(moment):
    """Prints what is in use by role, and what has no tensor."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    blocks = DOOR.snapshot().blocks
    found = look_at_device("cuda:0", blocks, time.monotonic_ns() + 10**9)
    took = time.perf_counter() - began
    roles = {}
    without_holder = 0
    for one in found.occupants:
        roles[one.role] = roles.get(one.role, 0) + one.bytes
        without_holder += one.bytes if not one.holder and one.what != "others" else 0
    attributed = found.total_bytes - without_holder
    row = {
        "moment": moment,
        "blocks": len(blocks),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "blocks_bytes": found.total_bytes,
        "matched_bytes": found.matched_bytes,
        "matched": found.matched_bytes / found.total_bytes,
        "role_and_holder": attributed / found.total_bytes,
        "roles": roles,
        "seconds": took,
    }
    print(json.dumps(row), flush=True)


for step in range(5):
    batch = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
    output = model(batch)
    loss = (output - batch).pow(2).mean()
    if step == 4:
        look("after the forward pass")
    optimizer.zero_grad()
    loss.backward()
    if step == 4:
        look("after the backward pass")
    optimizer.step()
    if step == 4:
        look("after the optimizer step")
sys.stdout.flush()
