"""Character model trained chunk by chunk; plain gradient descent, written by hand."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
TEXT = "the quick brown fox jumps over the lazy dog and runs away from the slow bear "


class CharCell(nn.Module):
    def __init__(self, vocabulary, width=96):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, hidden):
        hidden = self.cell(self.embed(ids), hidden)
        return self.head(hidden), hidden


def train(letters, codes, rows=24):
    model = CharCell(len(letters))
    hidden = torch.zeros(rows, 96)
    for step in range(1, STEPS + 1):
        places = (torch.arange(rows) * 7 + step) % (len(codes) - 1)
        logits, hidden = model(codes[places], hidden)
        loss = functional.cross_entropy(logits, codes[places + 1])
        model.zero_grad()
        loss.backward(retain_graph=True)
        for weight in model.parameters():
            weight.data -= 0.3 * weight.grad
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    letters = sorted(set(TEXT))
    train(letters, torch.tensor([letters.index(letter) for letter in TEXT * 4]))


if __name__ == "__main__":
    main()
