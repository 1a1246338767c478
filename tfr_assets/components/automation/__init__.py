"""What makes a dataset by itself: schedules, looks at its raw files, and assets that follow each other.

requests      what is asked for, and what was asked for last
schedule      at times
watch         after changes of raw files
slice_watch   the same, of raw data that comes in slices
follower      shards and merged after raw
"""
