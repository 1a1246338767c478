"""Shards for other programs: TensorFlow Datasets (`tfds`) and ArrayRecord (`array_record`)."""
