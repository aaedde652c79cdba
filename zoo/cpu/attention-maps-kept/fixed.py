"""A vision transformer block in inference; attention maps are collected to look at them."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "150"))


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.maps = []

    def forward(self, tokens):
        mixed, weights = self.attention(tokens, tokens, tokens, average_attn_weights=False)
        self.maps = [weights]
        tokens = tokens + mixed
        return tokens + self.mlp(tokens)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    block = Block().eval()
    for step in range(1, STEPS + 1):
        block(torch.randn(8, 200, 64))
        if step % 25 == 0:
            print(f"image batch {step}: sharpest {block.maps[-1].amax():.3f}")


if __name__ == "__main__":
    main()
