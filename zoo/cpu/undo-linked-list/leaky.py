"""Optimises a text by random edits in plain Python; bad edits are undone."""

import os
import random

STEPS = int(os.environ.get("ZOO_STEPS", "600"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Edit:
    __slots__ = ("after", "before", "paragraph", "prev")

    def __init__(self, paragraph, before, after, prev):
        self.paragraph = paragraph
        self.before = before
        self.after = after
        self.prev = prev


class Document:
    def __init__(self, source, paragraphs=30):
        self.source = source
        self.text = [[self.word() for _ in range(100)] for _ in range(paragraphs)]
        self.head = None

    def word(self):
        return "".join(self.source.choices(LETTERS, k=6))

    def score(self):
        return sum(word.count("e") - word.count("q") for part in self.text for word in part)

    def edit(self):
        place = self.source.randrange(len(self.text))
        words = [self.word() for _ in range(100)]
        self.head = Edit(place, self.text[place], words, self.head)
        self.text[place] = words

    def undo(self):
        self.text[self.head.paragraph] = self.head.before


def main():
    document = Document(random.Random(0))
    best = document.score()
    for step in range(1, STEPS + 1):
        for _ in range(6):
            document.edit()
            score = document.score()
            if score < best:
                document.undo()
            best = max(best, score)
        if step % 10 == 0:
            print(f"round {step}: score {best}")


if __name__ == "__main__":
    main()
