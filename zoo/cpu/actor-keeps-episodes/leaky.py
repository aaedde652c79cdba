"""Trains on what an actor in a process of its own plays; the actor keeps every episode."""

import os

import torch
import torch.multiprocessing as mp
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "3000"))


def act(queue, is_over):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    episodes = []
    state = torch.zeros(64, 32)
    while not is_over.is_set():
        played = []
        for _ in range(10):
            state = (state * 0.9 + torch.randn(64, 32)).tanh()
            played.append(state)
        episodes.append(torch.stack(played))
        queue.put(episodes[-1].mean(0).tolist())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    queue, is_over = mp.Queue(4), mp.Event()
    actor = mp.Process(target=act, args=(queue, is_over), name="actor", daemon=True)
    actor.start()
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        x = torch.tensor(queue.get())
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    is_over.set()
    actor.terminate()
    actor.join()


if __name__ == "__main__":
    main()
