"""Self-distillation with a momentum teacher (DINO style) on random textures."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional


class Options:
    steps = 320
    batch = 10
    image = 24
    patch = 6
    width = 48
    out = 96
    lr = 4e-4
    momentum = 0.99
    center_momentum = 0.9
    teacher_temp = 0.05
    student_temp = 0.1


class Textures:
    def __init__(self, side, seed=0):
        self.side = side
        self.gen = torch.Generator().manual_seed(seed)
        grid = torch.arange(side).float() / side
        self.y, self.x = torch.meshgrid(grid, grid, indexing="ij")

    def sample(self, n):
        freq = torch.rand(n, 3, 2, generator=self.gen) * 18
        phase = torch.rand(n, 3, 1, 1, generator=self.gen) * 6.28
        return torch.sin(
            freq[..., 0, None, None] * self.y + freq[..., 1, None, None] * self.x + phase
        )

    def augment(self, x):
        shift = int(torch.randint(0, self.side, (1,), generator=self.gen))
        x = torch.roll(x, shift, dims=-1)
        return x + 0.15 * torch.randn(x.shape, generator=self.gen)


class TinyViT(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.embed = nn.Conv2d(3, opt.width, opt.patch, stride=opt.patch)
        tokens = (opt.image // opt.patch) ** 2
        self.cls = nn.Parameter(torch.zeros(1, 1, opt.width))
        self.pos = nn.Parameter(torch.randn(1, tokens + 1, opt.width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            opt.width, 4, 2 * opt.width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(
            nn.Linear(opt.width, opt.width), nn.GELU(), nn.Linear(opt.width, opt.out)
        )

    def forward(self, x):
        t = self.embed(x).flatten(2).transpose(1, 2)
        t = torch.cat([self.cls.expand(len(x), -1, -1), t], dim=1) + self.pos
        return self.head(self.blocks(t)[:, 0])


class DistillLoss(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.register_buffer("center", torch.zeros(1, opt.out))

    def forward(self, student, teacher):
        goal = ((teacher - self.center) / self.opt.teacher_temp).softmax(-1).detach()
        loss = (
            -(goal * functional.log_softmax(student / self.opt.student_temp, dim=-1)).sum(-1).mean()
        )
        self.update_center(teacher)
        return loss

    def update_center(self, teacher):
        m = self.opt.center_momentum
        self.center = self.center * m + teacher.mean(0, keepdim=True) * (1 - m)


def cosine(step, total, lo, hi):
    return hi - (hi - lo) * 0.5 * (1 + math.cos(math.pi * step / total))


class Distiller:
    def __init__(self, opt):
        self.opt = opt
        self.student = TinyViT(opt)
        self.teacher = copy.deepcopy(self.student)
        self.criterion = DistillLoss(opt)
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=opt.lr)

    @torch.no_grad()
    def follow(self, step):
        m = cosine(step, self.opt.steps, self.opt.momentum, 1.0)
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=False):
            slow.mul_(m).add_(fast, alpha=1 - m)

    def step(self, step, view_a, view_b):
        loss = self.criterion(self.student(view_a), self.teacher(view_b))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow(step)
        return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    opt = Options()
    data, job = Textures(opt.image), Distiller(opt)
    running = 0.0
    for step in range(1, opt.steps + 1):
        x = data.sample(opt.batch)
        running = 0.95 * running + 0.05 * job.step(step, data.augment(x), data.augment(x))
        if step % 10 == 0:
            print(
                f"step {step} loss {running:.3f} |center| {job.criterion.center.norm().item():.4f}"
            )


if __name__ == "__main__":
    main()
