"""Kinds of raw data whose rows are files: images, audio, text documents."""
