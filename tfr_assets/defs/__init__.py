"""One folder a dataset."""
