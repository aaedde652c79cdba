"""Recording → another form: files that other tools read, and that large jobs are read from."""
