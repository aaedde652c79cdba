"""Parses documents into trees whose nodes know their parents: cycles, freed by the collector."""

import os
import random

STEPS = int(os.environ.get("ZOO_STEPS", "1200"))


class Node:
    def __init__(self, parent, text):
        self.parent = parent
        self.text = text
        self.children = []


def parse(source, depth=4):
    root = Node(None, "root")
    level = [root]
    for _ in range(depth):
        following = []
        for node in level:
            for _ in range(source.randrange(2, 5)):
                child = Node(node, "".join(source.choices("abcdefgh ", k=40)))
                node.children.append(child)
                following.append(child)
        level = following
    return root


def longest(node):
    return max([len(node.text.strip()), *(longest(child) for child in node.children)])


def main():
    source = random.Random(0)
    total = 0
    for step in range(1, STEPS + 1):
        total += longest(parse(source))
        if step % 200 == 0:
            print(f"document {step}: {total / step:.2f}")


if __name__ == "__main__":
    main()
