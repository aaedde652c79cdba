"""Hooks of modules and optimizers, and training with everything else that is usual."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def main() -> str:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))
    state = nn.LSTMCell(16, 16)
    optimizer = torch.optim.Adam([*net.parameters(), *state.parameters()])
    for layer in net:
        layer.register_forward_pre_hook(lambda *_: look())
        layer.register_forward_hook(lambda *_: look())
    optimizer.register_step_pre_hook(lambda *_: look())
    optimizer.register_step_post_hook(lambda *_: look())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    memory, kept = None, []
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        memory = state(net(torch.randn(4, 8)), memory)
        loss = memory[0].pow(2).mean()
        look()
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        memory = tuple(one.detach() for one in memory)
        kept.append(loss)
    return checksum(*kept, *net.parameters(), *state.parameters())


if __name__ == "__main__":
    run(main)
