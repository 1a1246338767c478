"""What Dagster shows of a dataset: its assets, their checks, its jobs, and what launches these by itself.

raw, shards, merged, published      one asset each; `attributes` is what they have in common
file_checks                         the checks of shards and of the merged file
jobs, verify_job                    what is launched
automation                          schedule, watch, assets that follow each other
bench                               what is measured: readers, reader_checks, reader_report, writers
"""
