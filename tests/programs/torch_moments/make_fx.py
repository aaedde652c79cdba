"""`make_fx` with real, fake and symbolic tensors, looked at from inside what is traced."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch.fx.experimental.proxy_tensor import make_fx


def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.relu(x @ y)
    look()
    z = z.reshape(-1)[: z.numel() // 2] * 2
    look()
    return z.sin()


def main() -> str:
    torch.manual_seed(0)
    kept, texts = [], []
    for number in range(ROUNDS):
        x, y = torch.randn(4, 8), torch.randn(8, 4 + number % 3)
        for mode in ("real", "fake", "symbolic"):
            traced = make_fx(function, tracing_mode=mode)(x, y)
            texts.append(traced.code)
            kept.append(traced(x, y))
    return checksum(*kept, *texts)


if __name__ == "__main__":
    run(main)
