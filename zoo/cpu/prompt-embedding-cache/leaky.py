"""Scores questions against a fixed set of topics with a small text encoder."""

import functools
import os
import random

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
WORDS = ["when", "where", "order", "parcel", "refund", "invoice", "delay", "broken", "size", "late"]


class Encoder(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.letters = nn.Embedding(128, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, text):
        codes = torch.tensor([min(ord(letter), 127) for letter in text])
        return self.mix(self.letters(codes).mean(0))


torch.manual_seed(0)
encoder = Encoder().eval()


@functools.cache
def embed(text):
    with torch.inference_mode():
        return encoder(text)


def question(source):
    words = " ".join(source.choice(WORDS) for _ in range(8))
    return f"{words} (ticket {source.randrange(10**9)})"


def main():
    torch.set_num_threads(1)
    source = random.Random(0)
    topics = {word: embed(word) for word in WORDS}
    found = dict.fromkeys(WORDS, 0)
    for step in range(1, STEPS + 1):
        for _ in range(32):
            vector = embed(question(source))
            best = max(topics, key=lambda word: float(topics[word] @ vector))
            found[best] += 1
        if step % 10 == 0:
            print(f"batch {step}: {max(found.values())} questions on the top topic")


if __name__ == "__main__":
    main()
