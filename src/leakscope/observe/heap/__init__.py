"""The heap snapshot: every object, its size and what it refers to, written to a file."""
