"""`torch.package` and `torch.save`: writing and reading models."""

import io
import warnings

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn
from torch.package import PackageExporter, PackageImporter


def main() -> str:
    torch.manual_seed(0)
    net, kept = nn.Linear(8, 8), []
    for _ in range(ROUNDS):
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with PackageExporter(buffer) as exporter:
                exporter.extern("torch.**")
                look()
                exporter.save_pickle("net", "net.pkl", net)
            buffer.seek(0)
            loaded = PackageImporter(buffer).load_pickle("net", "net.pkl")
        look()
        buffer = io.BytesIO()
        torch.save(loaded.state_dict(), buffer)
        look()
        buffer.seek(0)
        loaded.load_state_dict(torch.load(buffer))
        kept.append(loaded(torch.randn(4, 8)))
    return checksum(*kept)


if __name__ == "__main__":
    run(main)
