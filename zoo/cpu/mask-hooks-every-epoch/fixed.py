"""Gradual pruning: in each epoch the smallest weights are set to zero and kept there."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 4


class Pruner:
    def __init__(self, layer):
        self.layer = layer
        self.handle = None

    @torch.no_grad()
    def prune(self, share):
        weight = self.layer.weight
        cut = weight.abs().flatten().kthvalue(max(1, int(share * weight.numel()))).values
        mask = weight.abs() > cut
        weight.mul_(mask)
        if self.handle is not None:
            self.handle.remove()
        self.handle = weight.register_hook(lambda grad: grad * mask)
        return mask.float().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(400, 300), nn.ReLU(), nn.Linear(300, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    pruner = Pruner(model[0])
    for epoch in range(1, STEPS // EPOCH + 1):
        kept = pruner.prune(0.8 * epoch * EPOCH / STEPS)
        for _ in range(EPOCH):
            x = torch.randn(128, 400)
            loss = functional.mse_loss(model(x), x[:, :16])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"step {epoch * EPOCH}: loss {loss.item():.4f}, kept {kept:.2f}")


if __name__ == "__main__":
    main()
