"""Trains a quality filter for sentences and remembers the score each one got."""

import os
import random

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def sentence(source):
    return " ".join("".join(source.choices(SYLLABLES, k=3)) for _ in range(7))


def features(texts):
    counts = torch.zeros(len(texts), 26)
    for row, text in enumerate(texts):
        codes = torch.frombuffer(bytearray(text.replace(" ", ""), "ascii"), dtype=torch.uint8)
        counts[row] = torch.bincount(codes.long() - 97, minlength=26)
    return counts / counts.sum(1, keepdim=True)


class QualityFilter:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(26, 256), nn.ReLU(), nn.Linear(256, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.seen_scores = {}

    def learn(self, texts):
        x = features(texts)
        logits = self.net(x)[:, 0]
        loss = functional.binary_cross_entropy_with_logits(logits, (x[:, 0] > 0.1).float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for text, score in zip(texts, logits.sigmoid().tolist(), strict=True):
            self.seen_scores[text] = score
        return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    source = random.Random(0)
    quality = QualityFilter()
    for step in range(1, STEPS + 1):
        texts = [sentence(source) for _ in range(240)]
        loss = quality.learn(texts)
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.3f}, good {sum(quality.net[0].bias > 0).item()}")


if __name__ == "__main__":
    main()
