"""Fresh processes to measure in, what they use as seen from outside, and the page cache."""
