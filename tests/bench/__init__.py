"""What `make bench` measures: ratios within one run, since absolute figures hold for one machine only."""
