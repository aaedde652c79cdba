"""Source in, hits out: the same rules, read from the text alone. Nothing is run or imported."""
