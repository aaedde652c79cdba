"""Matrix factorisation by hand: no module, no optimizer, parameters stepped under no_grad."""

import os

import torch

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ratings = torch.randn(300, 8) @ torch.randn(8, 400)
    users = (0.1 * torch.randn(300, 24)).requires_grad_()
    items = (0.1 * torch.randn(400, 24)).requires_grad_()
    losses = []
    for step in range(1, STEPS + 1):
        error = ratings - users @ items.T
        loss = error.pow(2).mean() + 1e-4 * (users.norm() + items.norm())
        grads = torch.autograd.grad(loss, (users, items), retain_graph=True)
        with torch.no_grad():
            for weight, grad in zip((users, items), grads, strict=True):
                weight.sub_(5.0 * grad)
        losses.append(loss)
        if step % 100 == 0:
            print(f"step {step}: loss {sum(losses[-10:]) / 10:.4f}")


if __name__ == "__main__":
    main()
