"""A seeded training run whose every loss and weight is printed to the last bit."""

import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        return torch.randn(8), torch.tensor(float(index % 2))


def train(dropout):
    torch.manual_seed(7)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Sequential(nn.Linear(16, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2)
    for epoch in range(2):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            loss.backward()
            optimizer.step()
            print(epoch, loss.item().hex())
        model.eval()
        with torch.no_grad():
            print("eval", model(torch.randn(4, 8)).sum().item().hex())
    content = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    state = b"".join(
        value.numpy().tobytes() for entry in optimizer.state.values() for value in entry.values()
    )
    print(hashlib.sha256(content).hexdigest(), hashlib.sha256(state).hexdigest())
    print(torch.rand(1).item().hex(), hash(str(torch.get_rng_state().tolist()[:50])) is not None)


if __name__ == "__main__":
    train(0.0)
    train(0.5)
