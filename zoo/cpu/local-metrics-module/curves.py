"""Metrics that need all predictions of an epoch."""

import torch


class PrecisionCurve:
    def __init__(self, thresholds=21):
        self.thresholds = torch.linspace(0, 1, thresholds)
        self.reset()

    def reset(self):
        self.scores = []
        self.targets = []

    def update(self, logits, target):
        self.scores.append(logits.detach().sigmoid())
        self.targets.append(target)

    def compute(self, last=5):
        scores, targets = torch.cat(self.scores[-last:]), torch.cat(self.targets[-last:])
        hits = scores[None] >= self.thresholds[:, None, None]
        return (hits & (targets[None] > 0)).sum((1, 2)) / hits.sum((1, 2)).clamp(min=1)
