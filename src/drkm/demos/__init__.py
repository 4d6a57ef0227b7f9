"""The demos of `drkm demo`, one module each: typical use on data that need no download."""
