"""Suspects in, findings out: which pattern it is, in words, and what to do."""
