"""Growth → suspects: who holds what grows, and which statement of the program keeps it."""
