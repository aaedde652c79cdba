"""For how many bytes in use a role and a holder are found, at three moments of a training step."""

import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from gpu_transformer import BATCH, LENGTH, WIDTH, build

from leakscope.frameworks.arming import edge_providers
from leakscope.heap.contents import bytes_by_role, contents_of
from leakscope.heap.groups import read_groups
from leakscope.observe.devices.door import CudaDoor
from leakscope.observe.heap.snapshot import Moment, take_snapshot

DOOR = CudaDoor(torch)
DEVICE = "cuda:0"
model, optimizer = build()


def look(number, moment):
    """Prints what is in use by role, and what has no holder."""
    torch.cuda.synchronize()
    blocks = DOOR.snapshot().blocks
    in_use = sum(block.bytes for block in blocks)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "moment.heap"
        began = time.perf_counter()
        taken = take_snapshot(str(file), Moment("match", number, None, ""), edge_providers())
        took = time.perf_counter() - began
        groups = read_groups(file)
    assert groups is not None, "the snapshot cannot be read"
    roles = {role: size for role, (_, size) in bytes_by_role(groups, DEVICE).items()}
    held = sum(content.size_bytes for content in contents_of(groups, DEVICE) if content.path)
    row = {
        "moment": moment,
        "blocks": len(blocks),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "blocks_bytes": in_use,
        "matched_bytes": taken.device_bytes,
        "matched": taken.device_bytes / in_use,
        "role_and_holder": held / in_use,
        "roles": roles,
        "skipped": taken.skipped,
        "seconds": took,
    }
    print(json.dumps(row), flush=True)


for step in range(5):
    batch = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
    output = model(batch)
    loss = (output - batch).pow(2).mean()
    if step == 4:
        look(0, "after the forward pass")
    optimizer.zero_grad()
    loss.backward()
    if step == 4:
        look(1, "after the backward pass")
    optimizer.step()
    if step == 4:
        look(2, "after the optimizer step")
sys.stdout.flush()
