"""Heap snapshots of a process → paths → object groups → what grows. Reads files, judges nothing.

    groups = [read_groups(path) for path in files]
    growth = find_growth(groups, steps)
    said = [say(one) for one in growth.growing]

Names are imported from their modules. The file becomes arrays (`snapshot`), roots and the rank of
each reference (`roots`, `ranks`) give each object one path (`paths`, `reach`, `unreached`), steps
that a programmer would not write are left out (`see_through`), and what has the same path is one
group (`merge`, `groups`). Groups of several snapshots are compared (`aligned`, `growth`, `measure`)
and said in words (`links`).
"""
