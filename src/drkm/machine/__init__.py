"""The machine: memory and its layout, threads, elementwise operations and Ctrl-C."""
