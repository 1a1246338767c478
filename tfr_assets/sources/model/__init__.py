"""What a user names as raw data: the source, its kinds, splits and options, and how YAML gives them."""
