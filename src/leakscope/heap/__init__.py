"""Heap snapshots of a process → paths → object groups → what grows. Reads files, judges nothing.

    groups = [read_groups(path) for path in files]
    growth = find_growth(groups, steps)

Names are imported from their modules: `heap.groups`, `heap.growth`, `heap.links`.
"""
