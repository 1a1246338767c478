"""Readers that work in other processes, and how these processes are started and ended."""
