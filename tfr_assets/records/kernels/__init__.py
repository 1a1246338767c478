"""Compiled functions, and how they are compiled and kept (`jit`, `kernel_cache`). Nothing here knows files."""
