"""Trains a denoiser and shows one example of each of the last batches."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Gallery:
    def __init__(self):
        self.examples = []

    def show(self, batch):
        self.examples.append(batch[0].clone())
        del self.examples[:-5]

    def contrast(self):
        return torch.stack(self.examples[-5:]).std().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 3, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    gallery = Gallery()
    for step in range(1, STEPS + 1):
        clean = torch.rand(16, 3, 4, 4).repeat_interleave(8, 2).repeat_interleave(8, 3)
        noisy = clean + 0.2 * torch.randn_like(clean)
        loss = functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gallery.show(clean)
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, contrast {gallery.contrast():.3f}")


if __name__ == "__main__":
    main()
