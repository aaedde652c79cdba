"""Generates text with a key-value cache and keeps the last logits of each request."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "960"))
TOKENS = 48


class Decoder(nn.Module):
    def __init__(self, width=256, heads=4, vocabulary=400):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, token, past):
        q, k, v = self.qkv(self.embed(token)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(-2)
        return self.head(mixed)[:, -1], (k, v)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder().eval()
    answered = []
    for request in range(STEPS // TOKENS):
        token, past = torch.randint(0, 400, (64, 1)), None
        for _ in range(TOKENS):
            logits, past = model(token, past)
            token = torch.multinomial(logits.softmax(-1), 1)
        answered = [logits]
        print(f"request {request}: mean logit {answered[-1].mean():.3f}")


if __name__ == "__main__":
    main()
