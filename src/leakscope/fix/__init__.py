"""Findings in, diffs out: a change is proposed only where the source shows that it is safe."""
