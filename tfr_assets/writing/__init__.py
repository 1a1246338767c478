"""Datasets → files: the plan, its shards, the merged file; and what looks after stored files.

    dataset, raw, plan, sizing      what is to be written
    shard, merged                   writing it, unless it is there already
    writers                         ways to write in parallel; `write` is what a program calls
    places, publish                 where `write` puts files; datasets in object stores
    remote                          stored files by URL
    export                          files for TensorFlow Datasets and ArrayRecord
    audit, audit_plan, outdated, stray, stored      what is stored, compared with what must be there

Knows neither Dagster nor TensorFlow.
"""
