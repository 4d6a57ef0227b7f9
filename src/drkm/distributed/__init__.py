"""Samples that several processes share: collectives over them, and the group of processes."""
