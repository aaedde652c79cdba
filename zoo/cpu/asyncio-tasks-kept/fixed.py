"""An asyncio gateway in front of a small model; each request is a task."""

import asyncio
import contextvars
import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
current_request = contextvars.ContextVar("current_request")


class Gateway:
    def __init__(self, model):
        self.model = model
        self.tasks = set()
        self.lock = asyncio.Lock()

    async def handle(self, number):
        embedding = torch.randn(16, 256, generator=torch.Generator().manual_seed(number))
        current_request.set((number, embedding))
        async with self.lock:
            await asyncio.sleep(0)
            return self.infer()

    @torch.inference_mode()
    def infer(self):
        _, embedding = current_request.get()
        return self.model(embedding)

    def submit(self, number):
        task = asyncio.create_task(self.handle(number))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


async def serve():
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 600)).eval()
    gateway = Gateway(model)
    best = 0.0
    for step in range(1, STEPS + 1):
        logits = await gateway.submit(step)
        best = max(best, logits.softmax(1).amax().item())
        if step % 10 == 0:
            print(f"request {step}: most certain {best:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    asyncio.run(serve())
