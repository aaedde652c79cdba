"""Another library gets its scratch memory from PyTorch, by address, and gives it back."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


class Kernel:
    """Stands for a library that wants an address, not a tensor."""

    def __init__(self):
        self.runs = 0

    def __call__(self, batch):
        address = torch.cuda.caching_allocator_alloc(batch.nbytes)
        self.runs += address != 0
        answer = batch.mean()
        torch.cuda.caching_allocator_delete(address)
        return answer


@torch.no_grad()
def serve():
    model = build().eval()
    kernel = Kernel()
    for step in range(STEPS):
        answer = kernel(model(torch.randn(256, 1024, device="cuda")))
        if step % 100 == 0:
            print(f"step {step}: {answer.item():.4f}, {kernel.runs} runs")


if __name__ == "__main__":
    serve()
