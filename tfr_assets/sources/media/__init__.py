"""Kinds of raw data whose rows are files: images, audio, text; and what these have in common."""
