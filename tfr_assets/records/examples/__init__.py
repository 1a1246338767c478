"""Rows ↔ tf.Examples: `encoder` and `decoder` around the kernels, `writer` of one file, `ranges` of many."""
