"""What slices of one dataset owe each other, and when one is to be made again.

fits    columns: records of all slices can be read together
empty   slices without raw data
append  files that are new where a folder only grows
state   raw files: those of each slice are its own, and whether they have changed since it was made
"""
