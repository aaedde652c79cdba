"""Another thread traces, transforms and edits tensors, while this one is looked at."""

import threading
from time import sleep

import torch
import torch._dynamo
from forced import ROUNDS, checksum, graph_text, look, run
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx


def work(kept: list[object]) -> None:
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    for _ in range(ROUNDS):
        inputs = torch.randn(4, 8, generator=generator)
        traced = torch.jit.trace(net, inputs, check_trace=False)
        kept += [traced(inputs), graph_text(traced.inlined_graph)]
        kept.append(torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(inputs))
        kept.append(make_fx(lambda x: torch.relu(x) * 2)(inputs).code)
        hidden = net(inputs)
        view = hidden[1:3]
        view.mul_(2)
        kept += [hidden * view.sum(), torch.jit.freeze(traced.eval())(inputs)]


def main() -> str:
    kept: list[object] = []
    thread = threading.Thread(target=work, args=(kept,))
    thread.start()
    while thread.is_alive():
        look()
        sleep(0.0005)
    return checksum(*kept)


if __name__ == "__main__":
    run(main)
