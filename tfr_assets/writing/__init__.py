"""Datasets → files: the plan, its shards, the merged file."""
