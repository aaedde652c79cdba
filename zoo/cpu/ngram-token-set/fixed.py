"""Near-duplicate filter for a crawl, in plain Python: documents are compared by shingles."""

import os
import random

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
STEMS = ["".join(p) for p in zip("bcdfghjklmnpqrstvwxz", "aeiouaeiouaeiouaeiou", strict=True)]


def word(source):
    return "".join(source.choices(STEMS, k=source.randrange(2, 4)))


class ShingleFilter:
    def __init__(self, size=3):
        self.size = size
        self.known = set()

    def novelty(self, document):
        words = document.split()
        shingles = {
            " ".join(words[start : start + self.size])
            for start in range(len(words) - self.size + 1)
        }
        fresh = len(shingles - self.known) / len(shingles)
        self.known = shingles
        return fresh


def crawl(source):
    vocabulary = [word(source) for _ in range(2000)]
    while True:
        yield [" ".join(source.choices(vocabulary, k=60)) for _ in range(6)]


def main():
    shingles = ShingleFilter()
    batches = crawl(random.Random(0))
    accepted = 0
    for step in range(1, STEPS + 1):
        for document in next(batches):
            accepted += shingles.novelty(document) > 0.5
            checksum = sum(ord(letter) * place for place, letter in enumerate(document * 150))
        if step % 10 == 0:
            print(f"batch {step}: {accepted} accepted, checksum {checksum % 997}")


if __name__ == "__main__":
    main()
