"""Raw data of the bundled datasets, made from what is installed: nothing is downloaded.

raw/digits/7/0042.png        scikit-learn's 1,797 handwritten digits, 8 × 8 pixels, a folder per class
raw/tones/A4/03.wav          notes of two octaves, ten sounds each, a folder per class
raw/topics/operators.txt     Python's own help topics, a document a file
raw/mixed/…                  photographs, sounds, captions and numbers of the same things, by name
"""
