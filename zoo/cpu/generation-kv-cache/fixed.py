"""Generates text with a key-value cache of fixed size."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "960"))
TOKENS = 48


class Decoder(nn.Module):
    def __init__(self, width=256, heads=4, vocabulary=500):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, token, past):
        q, k, v = self.qkv(self.embed(token)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        at, keys, values = past
        keys[:, at : at + 1], values[:, at : at + 1] = k, v
        k, v = keys[:, : at + 1], values[:, : at + 1]
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(-2)
        return self.head(mixed)[:, -1], (at + 1, keys, values)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder().eval()
    keys, values = torch.zeros(2, 64, TOKENS, 4, 64)
    for request in range(STEPS // TOKENS):
        token, past = torch.randint(0, 500, (64, 1)), (0, keys, values)
        for _ in range(TOKENS):
            logits, past = model(token, past)
            token = torch.multinomial(logits.softmax(-1), 1)
        print(f"request {request}: cache {keys.numel() * 8 / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
