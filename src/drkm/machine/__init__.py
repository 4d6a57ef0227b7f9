"""The machine: memory and its layout, threads, exponentials and Ctrl-C."""
