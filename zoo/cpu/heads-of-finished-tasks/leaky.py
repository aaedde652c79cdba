"""Continual learning: a shared backbone with a fresh wide head for each incoming task."""

import argparse
import os
from dataclasses import dataclass

import torch
from backbone import Backbone, task_batches
from torch import nn


@dataclass
class Config:
    tasks: int = int(os.environ.get("ZOO_STEPS", "260")) // 10
    steps_per_task: int = 10
    batch: int = 128
    dim: int = 48
    width: int = 256
    classes: int = 400
    backbone_lr: float = 2e-4
    head_lr: float = 3e-3
    seed: int = 8


class ContinualLearner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.backbone = Backbone(cfg.dim, cfg.width)
        self.head = None
        self.anchor = None
        self.optimizer = torch.optim.AdamW(self.backbone.parameters(), lr=cfg.backbone_lr)

    def begin_task(self):
        """New head for the new label space; the backbone keeps its optimizer state."""
        self.head = nn.Linear(self.cfg.width, self.cfg.classes)
        self.optimizer.add_param_group(
            {"params": list(self.head.parameters()), "lr": self.cfg.head_lr}
        )
        self.anchor = [p.detach().clone() for p in self.backbone.parameters()]

    def drift_penalty(self):
        pairs = zip(self.backbone.parameters(), self.anchor, strict=True)
        return sum((p - a).pow(2).sum() for p, a in pairs)

    def step(self, x, y):
        self.optimizer.zero_grad()
        logits = self.head(self.backbone(x))
        loss = nn.functional.cross_entropy(logits, y)
        (loss + 0.5 * self.drift_penalty()).backward()
        self.optimizer.step()
        return loss.item(), (logits.argmax(1) == y).float().mean().item()


def run(cfg):
    learner = ContinualLearner(cfg)
    step = 0
    for task in range(1, cfg.tasks + 1):
        learner.begin_task()
        for x, y in task_batches(task, cfg.steps_per_task, cfg.batch, cfg.dim, cfg.classes):
            loss, acc = learner.step(x, y)
            step += 1
            if step % 5 == 0:
                print(f"task {task:2d} step {step:4d} loss {loss:.4f} acc {acc:.3f}")
        with torch.no_grad():
            moved = learner.drift_penalty().sqrt().item()
        print(f"== task {task} done, backbone moved {moved:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=Config.tasks)
    parser.add_argument("--steps-per-task", type=int, default=Config.steps_per_task)
    parser.add_argument("--seed", type=int, default=Config.seed)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    run(Config(tasks=args.tasks, steps_per_task=args.steps_per_task, seed=args.seed))


if __name__ == "__main__":
    main()
