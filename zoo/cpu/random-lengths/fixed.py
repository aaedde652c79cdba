"""A language model on texts padded to one length."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "250"))
LONGEST = 320


def text_length():
    return LONGEST // 4


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = 64
    embed = nn.Embedding(1000, width)
    block = nn.TransformerEncoderLayer(width, 4, 128, batch_first=True, dropout=0.0)
    head = nn.Linear(width, 1000)
    model = nn.Sequential(embed, block, head)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        ids = torch.randint(0, 1000, (8, text_length()))
        logits = model(ids)
        loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: length {ids.shape[1]}, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
