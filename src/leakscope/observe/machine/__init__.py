"""What of a machine bears on memory."""
