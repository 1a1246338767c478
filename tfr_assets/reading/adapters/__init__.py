"""Columns and batches as other frameworks take them. Each module is one framework's, and the only one to import it."""
