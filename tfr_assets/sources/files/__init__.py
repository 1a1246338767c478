"""Finding raw files: what a path matches, trees of files on disk or by URL, and their contents."""
