"""Arrow batches ↔ TFRecord bytes: encoding, framing, verifying, merging. Knows neither Dagster nor TensorFlow."""
