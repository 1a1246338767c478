"""Stored files by URL: what stands in for them here, and merging them where they are."""
