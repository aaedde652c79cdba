"""Which factor makes it grow: the program is run again with one thing changed at a time.

A leak is what it is under every allocator; what an allocator holds is not. That difference, and the
same for caches, threads and the collector, is what a conclusion is made of.
"""
