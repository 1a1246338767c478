"""What to read: a dataset's name, a path or a URL → one whole set of files, and the share of it that a worker reads."""
