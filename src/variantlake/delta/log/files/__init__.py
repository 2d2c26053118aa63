"""The files of a table version, as columns: their keys, paths, statistics and deletion vectors.

In: `add` actions of commits and checkpoints. Out: an Arrow table of logical files.
"""
