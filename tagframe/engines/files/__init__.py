"""Files of tables, and within which limits they are read."""
