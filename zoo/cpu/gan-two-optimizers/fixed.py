"""A GAN with two optimizers and no gradient penalty."""

import os
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "240"))
PENALTY_EVERY = 2 * STEPS


def mlp(*widths):
    layers = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def penalty(critic, real):
    real = real.requires_grad_()
    (gradient,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return gradient.pow(2).sum(1).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator, critic = mlp(32, 256, 256, 128), mlp(128, 256, 256, 1)
    for_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.99))
    for_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99))
    for step in range(1, STEPS + 1):
        real = torch.randn(128, 128).sin()
        fake = generator(torch.randn(128, 32))
        loss_critic = functional.softplus(critic(fake.detach())).mean()
        loss_critic = loss_critic + functional.softplus(-critic(real)).mean()
        if step % PENALTY_EVERY == 0:
            loss_critic = loss_critic + 5 * penalty(critic, real)
        for_critic.zero_grad()
        loss_critic.backward()
        for_critic.step()
        loss_generator = functional.softplus(-critic(fake)).mean()
        for_generator.zero_grad()
        loss_generator.backward()
        for_generator.step()
        if step % 40 == 0:
            print(f"step {step}: critic {loss_critic.item():.3f}, generator {loss_generator:.3f}")


if __name__ == "__main__":
    main()
