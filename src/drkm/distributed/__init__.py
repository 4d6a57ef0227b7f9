"""Samples that several processes share: collective operations, and the process group."""
