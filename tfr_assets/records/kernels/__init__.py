"""Compiled functions; how they are compiled, kept and shown (`jit`, `kernel_cache`, `compile_progress`). No files."""
