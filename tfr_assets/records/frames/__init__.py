"""Files of framed records: strict scanning, offset index, manifest, merging, report and verdicts."""
