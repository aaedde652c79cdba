"""Trains a voice converter; the voice matrix of each speaker is computed once."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
SPEAKERS = 24


class Voices:
    def __init__(self):
        self.voices = {}

    def of(self, speaker):
        if speaker not in self.voices:
            generator = torch.Generator().manual_seed(speaker)
            self.voices[speaker] = torch.linalg.qr(torch.randn(128, 128, generator=generator)).Q
        return self.voices[speaker]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(128, 350), nn.GELU(), nn.Linear(350, 128))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    voices = Voices()
    for step in range(1, STEPS + 1):
        speakers = [(3 * step + place) % SPEAKERS for place in range(3)]
        turn = torch.stack([voices.of(speaker) for speaker in speakers])
        x = torch.randn(3, 48, 128)
        loss = functional.mse_loss(model(x @ turn), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, speakers {len(voices.voices)}")


if __name__ == "__main__":
    main()
