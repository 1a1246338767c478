"""Arrow batches ↔ TFRecord bytes: encoding, framing, verifying, merging. Knows neither Dagster nor TensorFlow.

    schema      which features a record has: from Arrow types to the feature spec
    arrow       columns of Arrow and NumPy: nested lists, ragged rows, tensors, memory
    kernels     compiled functions: CRC32C, encoding, decoding, validating
    frames      files of framed records: scan, index, manifest, merge
    examples    rows ↔ tf.Examples: encoder, decoder, the writer of one file

Each imports those above it in this list. Rooms above may import all but `kernels`, which is for this room, but for
`kernels.jit`, with which other rooms compile kernels of their own, and `kernels.compile_progress`, which shows it.
"""
