"""The feature spec → tensors: how TensorFlow parses records, decodes media, and takes over columns from our kernels."""
