"""DataLoader workers and child processes of torch.multiprocessing that look at themselves."""

import torch
import torch.multiprocessing as multiprocessing
from forced import ROUNDS, checksum, look, run
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self) -> int:
        return 4 * ROUNDS

    def __getitem__(self, index: int) -> torch.Tensor:
        item = torch.full((8,), float(index), requires_grad=False)
        look()
        return item


def child(queue: "multiprocessing.Queue[torch.Tensor]") -> None:
    weight = torch.ones(8, requires_grad=True)
    for number in range(ROUNDS):
        loss = (weight * number).exp().sum()
        look()
        loss.backward()
        look()
    queue.put(weight.grad)
    queue.get()


def main() -> str:
    kept = []
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=2):
        look()
        kept.append(batch)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    kept.append(queue.get().clone())
    look()
    queue.put(None)
    process.join()
    return checksum(*kept, process.exitcode)


if __name__ == "__main__":
    run(main)
