"""Fake, meta and functional tensors: sizes without memory."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv


def main() -> str:
    torch.manual_seed(0)
    texts = []
    for _ in range(ROUNDS):
        environment = ShapeEnv()
        with FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True) as mode:
            net = nn.Linear(8, 8)
            look()
            fake = mode.from_tensor(torch.randn(4, 8), static_shapes=False)
            look()
            result = net(fake).relu()
            look()
            texts.append(f"{result} {type(result.grad_fn).__name__}")
        with torch.device("meta"):
            result = nn.Linear(8, 8)(torch.randn(4, 8))
            look()
            texts.append(f"{result.shape} {result.device}")
        look()
        texts.append(str(environment.format_guards()))
    return checksum(*texts)


if __name__ == "__main__":
    run(main)
