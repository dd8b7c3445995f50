"""Users' own data in the files of other programs, for `lra data import`.

The program starts this package in a Python (src/data/python_reader.h), sends a
request in JSON, and reads lines of JSON and frames of examples (frames.py). Needs pyarrow and
NumPy; scipy, pillow and soundfile for some formats. Nothing here imports torch or `lra`.
"""
