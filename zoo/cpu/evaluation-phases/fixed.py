"""Every 25 steps the whole validation set is counted right or wrong, batch by batch."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 100))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    validation = torch.randn(4000, 64)
    for step in range(1, STEPS + 1):
        model.train()
        x = torch.randn(320, 64)
        loss = functional.cross_entropy(model(x), x.argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            model.eval()
            with torch.no_grad():
                right = sum(
                    int((model(part).argmax(1) == part.argmax(1)).sum())
                    for part in validation.split(200)
                )
            print(f"step {step}: accuracy {right / len(validation):.3f}")


if __name__ == "__main__":
    main()
