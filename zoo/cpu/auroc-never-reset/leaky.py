"""Trains a tagger and tracks its exact AUROC with torchmetrics."""

import os

import torch
from torch import nn
from torch.nn import functional
from torchmetrics.classification import MulticlassAUROC

STEPS = int(os.environ.get("ZOO_STEPS", "480"))
EPOCH = 60
CLASSES = 24


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(48, 1024), nn.GELU(), nn.Linear(1024, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    auroc = MulticlassAUROC(num_classes=CLASSES)
    truth = torch.randn(48, CLASSES)
    for step in range(1, STEPS + 1):
        x = torch.randn(96, 48)
        y = (x @ truth).argmax(1)
        logits = model(x)
        loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        auroc.update(logits.detach().softmax(1), y)
        if step % EPOCH == 0:
            print(f"epoch {step // EPOCH}: loss {loss.item():.3f}, AUROC {auroc.compute():.3f}")


if __name__ == "__main__":
    main()
