"""The same lengths, in random order."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "320"))
EPOCHS = 4


def lengths():
    drawn = torch.randint(10, 120, (STEPS // EPOCHS,))
    return drawn.tolist()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width, words = 48, 600
    model = nn.Sequential(
        nn.Embedding(words, width),
        nn.TransformerEncoderLayer(width, 2, 96, batch_first=True, dropout=0.0),
        nn.Linear(width, words),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for length in lengths():
            ids = torch.randint(0, words, (8, length))
            logits = model(ids)
            loss = functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
