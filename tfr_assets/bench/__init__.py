"""Everything that measures: readers, writers, and the processes that they are measured in.

process     fresh processes, what they use, the page cache
readers     how fast each reader is, its pictures, and the recommendation
writers     how fast each writer is, beside a plain write of the same bytes
"""
