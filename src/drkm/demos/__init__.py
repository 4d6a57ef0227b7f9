"""What the command `drkm demo` shows: the main job on data that need no download, one module each."""
