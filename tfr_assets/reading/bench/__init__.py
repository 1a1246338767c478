"""How the readers are measured. Nothing here imports TensorFlow but what a measuring process runs.

options      what to measure, and how often
hardware     on which machine
processes    a fresh process for each measurement, forked from one that has imported TensorFlow
watch        what a process uses: memory, descriptors; seen from outside
cache        files out of the page cache, and the limit: plain reading of the same bytes
passes       whole passes over the records                        (TensorFlow)
measurement  what came of it: medians with their spread, kept on disk beside the one before
spans        who opens, reads, maps and trains when               (TensorFlow)
sweep        speed over cycle length and batch size               (TensorFlow)
report       tables, pictures, the recommendation
slow_server  storage that is far away
"""
