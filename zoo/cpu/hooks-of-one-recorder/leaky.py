import time
from functools import partial

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def stripes(n, side, classes, seed):
    """Oriented gratings; the class is the orientation."""
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=gen)
    angle = y.float() / classes * 3.14159
    grid = torch.arange(side).float()
    phase = torch.rand(n, 1, 1, generator=gen) * 6.28
    field = (
        grid[None, None, :] * angle.cos()[:, None, None]
        + grid[None, :, None] * angle.sin()[:, None, None]
    )
    x = torch.sin(0.8 * field + phase)[:, None] + 0.4 * torch.randn(n, 1, side, side, generator=gen)
    return TensorDataset(x, y)


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class GratingNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            Block(1, 12), nn.MaxPool2d(2), Block(12, 24), nn.MaxPool2d(2), Block(24, 24)
        )
        self.classifier = nn.Linear(24, classes)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class DeadUnitProbe:
    """Watches the ReLUs during evaluation and reports the share of silent units."""

    def __init__(self, model):
        self.fired = {}
        for name, module in model.named_modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(partial(self.record, name))

    def record(self, name, module, args, out):
        if not module.training:
            self.fired[name] = (out > 0).float()

    def silent(self):
        shares = [1 - f.amax((0, 2, 3)).mean().item() for f in self.fired.values()]
        return sum(shares) / len(shares)


class Classifier:
    def __init__(self, classes=8, side=24, lr=0.03):
        self.model = GratingNet(classes)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4
        )
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=6)
        self.train_loader = DataLoader(stripes(640, side, classes, 0), batch_size=32, shuffle=True)
        self.valid_loader = DataLoader(stripes(96, side, classes, 1), batch_size=32)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = functional.cross_entropy(self.model(x), y, label_smoothing=0.05)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        probe = DeadUnitProbe(self.model)
        loss = correct = count = 0.0
        for x, y in self.valid_loader:
            logits = self.model(x)
            loss += functional.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
            count += len(y)
        self.plateau.step(loss / count)
        return loss / count, correct / count, probe.silent()


def main(epochs=24):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    job = Classifier()
    time.perf_counter()
    for epoch in range(epochs):
        train = job.train_epoch()
        valid, _accuracy, silent = job.validate()
        print(f"epoch {epoch:2d} train {train:.3f} valid {valid:.3f} silent {silent:.1%}")


if __name__ == "__main__":
    main()
