"""Clones: another table with the rows of a version, by naming its files or by copying them.

In: a snapshot and a location. Out: one commit there, `CLONE` in its history, as Delta Spark writes
it. Nothing of the source changes.
"""
