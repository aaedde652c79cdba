"""The process tree, and what each process is for."""
