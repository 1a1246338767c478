"""Compiled functions, and how they are compiled and kept (`jit`, `kernel_cache`, `compile_progress`). Nothing here knows files."""
