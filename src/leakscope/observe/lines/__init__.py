"""Profile one function line by line."""
