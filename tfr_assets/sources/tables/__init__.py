"""Tables → Arrow: Parquet, Arrow, CSV and JSON files; and rows that a program has: DataFrames, dicts, functions."""
