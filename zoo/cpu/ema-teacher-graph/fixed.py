"""Mean-teacher training: the teacher's weights follow the student's as a moving average."""

import os

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class MeanTeacher:
    def __init__(self, student, decay=0.99):
        self.student = student
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in student.named_parameters()}

    @torch.no_grad()
    def update(self):
        for name, weight in self.student.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * weight

    def predict(self, x):
        with torch.no_grad():
            return functional_call(self.student, self.shadow, (x,))


def make_student(width=48, depth=19):
    layers = [nn.Linear(32, width)]
    for _ in range(depth - 1):
        layers += [nn.Tanh(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.Linear(width, 8))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    student = make_student()
    teacher = MeanTeacher(student)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(96, 32)
        noisy = x + 0.05 * torch.randn_like(x)
        loss = functional.mse_loss(student(noisy), x[:, :8].abs())
        loss = loss + 0.5 * functional.mse_loss(student(noisy), teacher.predict(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
