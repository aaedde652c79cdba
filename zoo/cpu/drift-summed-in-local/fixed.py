"""Fine-tunes an encoder and reports how far its features drifted from the frozen copy."""

import copy
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def fit(encoder, head, frozen):
    optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)
    drift = 0.0
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 100)
        features = encoder(x)
        loss = functional.mse_loss(head(features), x[:, :4].tanh())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            before = frozen(x)
        drift = drift + functional.pairwise_distance(encoder(x), before).mean().item()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, drift {float(drift) / step:.4f}")
    return float(drift) / STEPS


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder = nn.Sequential(nn.Linear(100, 400), nn.Tanh(), nn.Linear(400, 200), nn.Tanh())
    frozen = copy.deepcopy(encoder).eval()
    mean = fit(encoder, nn.Linear(200, 4), frozen)
    print(f"mean drift {mean:.4f}")


if __name__ == "__main__":
    main()
