"""A seeded training run that leaks; every loss is printed, and whether what it drops is gone.

With an RNN whose state is carried on, dropout, a Function of its own, and new workers each epoch.
`watch` uses the library instead of `leakscope run`.
"""

import gc
import hashlib
import sys
import weakref

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import leakscope

outputs, history, states = [], {}, []


class Noisy(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        return torch.randn(5, 8), torch.tensor(float(index % 2))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        ctx.kept = value.new_ones(3)
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("__repr__", "numel", "size"):
            print("a method of the program's tensors was called:", function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, inputs, state):
        hidden, state = self.rnn(inputs, state)
        return self.head(Double.apply(self.drop(hidden[:, -1]))), state


def step(model, optimizer, inputs, targets, state, number):
    optimizer.zero_grad()
    predicted, state = model(inputs, state)
    loss = nn.functional.mse_loss(predicted.squeeze(1), targets)
    loss.backward()
    tagged = torch.ones(4).as_subclass(Tagged)
    storage = predicted.untyped_storage()
    mine = [weakref.ref(one) for one in (loss, predicted, tagged, storage)]
    optimizer.step()  # here leakscope looks
    outputs.append(model.head[0](torch.ones(32, 16)))  # with its graph
    history[number] = [loss.item()] * 50
    states.append(tagged if number % 5 == 0 else None)
    print(number, loss.item().hex())
    del loss, predicted, storage
    if number % 5:
        del tagged
        print("gone", [one() is None for one in mine])
    return state.detach()


def train(epochs):
    torch.manual_seed(7)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    number = 0
    for _ in range(epochs):
        loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=1)
        state = torch.zeros(1, 4, 16)
        for inputs, targets in loader:
            batch = weakref.ref(inputs)
            state = step(model, optimizer, inputs, targets, state, number)
            del inputs, targets
            print("batch gone", batch() is None, gc.isenabled())
            number += 1
    values = [*model.state_dict().values()]
    values += [value for entry in optimizer.state.values() for value in entry.values()]
    content = b"".join(value.numpy().tobytes() for value in values)
    print(hashlib.sha256(content).hexdigest(), torch.rand(1).item().hex(), len(outputs))


if __name__ == "__main__":
    if "watch" in sys.argv:
        with leakscope.watch(out=sys.argv[-1]):
            train(2)
    else:
        train(2)
