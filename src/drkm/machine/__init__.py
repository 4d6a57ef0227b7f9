"""What the machine has and does: memory, threads, Ctrl-C."""
