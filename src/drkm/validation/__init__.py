"""Checks of values, of parts of files and of names inside parameters: a wrong one is refused with an error."""
