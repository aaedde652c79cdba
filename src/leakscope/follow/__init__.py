"""A recording that grows in, a screen that shows it out. In a process of its own, never the
program's: it reads files and nothing else, so whatever happens to it the program does not notice.
"""
