"""Rows of exact counters."""
