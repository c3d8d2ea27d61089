"""Places that hold tables: their names, their rows, and nothing of what they mean."""
