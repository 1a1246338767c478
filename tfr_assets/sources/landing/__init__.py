"""Rows that cannot be read by range where they are: written once as Parquet, joined, sorted, shuffled."""
