"""Columns in memory: Arrow's nested lists and tensors, NumPy's ragged rows and strings, reused buffers."""
