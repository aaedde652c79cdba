"""Inference service: uncertain answers go to a second model, certain ones are returned."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def make_net(width):
    features = nn.Sequential(nn.Conv2d(3, width, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
    return nn.Sequential(features, nn.Flatten(), nn.Linear(16 * width, 20)).eval()


class Router:
    def __init__(self):
        self.fast = make_net(8)
        self.careful = make_net(24)
        self.open_requests = {}

    @torch.inference_mode()
    def answer(self, number, image):
        self.open_requests[number] = {"image": image}
        scores = self.fast(image[None]).softmax(1)
        self.open_requests[number]["scores"] = scores
        if number % 4 == 0:
            del self.open_requests[number]
            return int(scores.argmax())
        best = int(self.careful(image[None]).argmax())
        del self.open_requests[number]
        return best


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    router = Router()
    counts = [0] * 20
    for step in range(1, STEPS + 1):
        for place in range(4):
            image = torch.rand(3, 64, 64)
            counts[router.answer(4 * step + place, image)] += 1
        if step % 10 == 0:
            print(f"batch {step}: most frequent {counts.index(max(counts))}")


if __name__ == "__main__":
    main()
