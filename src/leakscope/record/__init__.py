"""The wall: everything left of it writes here, everything right of it reads from here."""
