"""Model files: their content, and the checks when they are read."""
