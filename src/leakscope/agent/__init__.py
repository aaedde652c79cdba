"""The agent of one process: its steps, its schedule of snapshots, its end."""
