"""Cleans a stream of documents in plain Python: normalise, tokenise, drop duplicates."""

import os
import random
import re

STEPS = int(os.environ.get("ZOO_STEPS", "1500"))
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "sh", "th")]


def document(source):
    return " ".join(source.choice(WORDS).title() for _ in range(source.randrange(60, 120)))


def normalise(text):
    return re.sub(r"[^a-z ]+", "", re.sub(r"\s+", " ", text.lower())).strip()


def main():
    source = random.Random(0)
    seen = {}
    kept = 0
    for step in range(1, STEPS + 1):
        for _ in range(40):
            text = normalise(document(source))
            if text not in seen:
                seen[text] = sorted(set(text.split()))
                kept += len(seen[text])
        if step % 100 == 0:
            print(f"chunk {step}: {kept} tokens kept")


if __name__ == "__main__":
    main()
