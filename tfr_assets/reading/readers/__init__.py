"""The readers, and what they are made of. `tfr_assets.reading.registry` lists them.

options    what a reader is asked for
pieces     whole files, or a worker's share of them
framing    a piece → its records, by the project's own strict scan
source     pieces → datasets of serialized records
parsing    serialized records → tensors, batch by batch or one at a time

stepwise, cached, autotuned, sharded, bounded, merged, file_queue, data_service
"""
