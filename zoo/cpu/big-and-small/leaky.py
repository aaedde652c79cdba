"""Trains a tagger, keeps logits for calibration and writes a prediction log."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
LABELS = 200


class Calibration:
    def __init__(self):
        self.kept_logits = []

    def add(self, logits):
        self.kept_logits.append(logits.detach())

    def temperature(self):
        return self.kept_logits[-1].std().item()


class PredictionLog:
    def __init__(self):
        self.lines = []

    def add(self, step, guesses, truths):
        for place, (guess, truth) in enumerate(zip(guesses, truths, strict=True)):
            self.lines.append(
                f"{step:06d}\t{place:04d}\tpredicted={guess:03d}\texpected={truth:03d}"
            )


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(60, 400), nn.ReLU(), nn.Linear(400, LABELS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    calibration, log = Calibration(), PredictionLog()
    for step in range(1, STEPS + 1):
        y = torch.randint(0, LABELS, (256,))
        x = functional.one_hot(y % 60, 60) + 0.2 * torch.randn(256, 60)
        logits = model(x)
        loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        calibration.add(logits)
        log.add(step, logits[:64].argmax(1).tolist(), y[:64].tolist())
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}, spread {calibration.temperature():.3f}")
    print(log.lines[-1])


if __name__ == "__main__":
    main()
