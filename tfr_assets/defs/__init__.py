"""One folder per dataset."""
