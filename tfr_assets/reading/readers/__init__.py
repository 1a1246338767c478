"""The readers, and what they are made of. `tfr_assets.reading.registry` lists them.

options              what a reader is asked for
framing              a range of a file → its records, by the project's own strict scan
serialized_records   ranges → datasets of serialized records
parsing              serialized records → tensors, batch by batch or one at a time
generators           datasets of what Python generates

stepwise, cached, autotuned, sharded, bounded, merged, file_queue, data_service
"""
