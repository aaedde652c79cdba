"""An inference service: clients put requests in a queue, two threads run the model."""

import os
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "900"))


@dataclass
class Request:
    number: int
    payload: torch.Tensor
    answer: Future = field(default_factory=Future)


class Service:
    def __init__(self, model):
        self.model = model
        self.waiting = queue.Queue(maxsize=16)
        self.in_flight = {}
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def submit(self, number, payload):
        request = Request(number, payload)
        self.in_flight[number] = request
        self.waiting.put(request)
        return request.answer

    def work(self):
        while (request := self.waiting.get()) is not None:
            with torch.inference_mode():
                scores = self.model(request.payload).softmax(-1)
            request.answer.set_result(scores.topk(3).indices.tolist())
            self.in_flight.pop(request.number)

    def close(self):
        for _ in self.threads:
            self.waiting.put(None)
        for thread in self.threads:
            thread.join()


def client(service, first, count, done):
    for number in range(first, first + count):
        payload = torch.randn(12, 3, 24, 24)
        done.append(len(service.submit(number, payload).result()))
        del done[:-10]
        time.sleep(0.002)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 400, 100),
    ).eval()
    service = Service(model)
    done = []
    share = STEPS // 3
    clients = [
        threading.Thread(target=client, args=(service, k * share, share, done)) for k in range(3)
    ]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    service.close()
    print(f"served {3 * share} requests")


if __name__ == "__main__":
    main()
