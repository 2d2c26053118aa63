"""Ordering the rows of a table across its files, by the paths that it is clustered by.

In: a snapshot, its clustering paths, a budget of bytes. Out: the files that overlap most by the
bounds in the log, rewritten as files that do not overlap.
"""
