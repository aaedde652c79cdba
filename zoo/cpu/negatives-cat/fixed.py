"""Contrastive training with a bank of negative keys, as in momentum contrast."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def make_encoder():
    return nn.Sequential(nn.Linear(96, 384), nn.ReLU(), nn.Linear(384, 64))


def two_views(count=96):
    x = torch.randn(count, 96)
    return x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)


def train():
    query_net, key_net = make_encoder(), make_encoder()
    key_net.load_state_dict(query_net.state_dict())
    optimizer = torch.optim.SGD(query_net.parameters(), lr=0.05, momentum=0.9)
    bank = functional.normalize(torch.randn(256, 64), dim=1)
    for step in range(1, STEPS + 1):
        one, two = two_views()
        queries = functional.normalize(query_net(one), dim=1)
        with torch.no_grad():
            keys = functional.normalize(key_net(two), dim=1)
            bank = torch.cat((bank, keys))[-256:]
        positive = (queries * keys).sum(1, keepdim=True)
        negative = queries @ bank[-256:].T
        loss = functional.cross_entropy(
            torch.cat((positive, negative), 1) / 0.1, torch.zeros(len(one), dtype=torch.long)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(key_net.parameters(), query_net.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train()
