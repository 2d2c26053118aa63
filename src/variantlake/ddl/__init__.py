"""Changing what a table is like: ALTER TABLE, from its parts to a commit.

In: a snapshot and one change, as a statement's parts. Out: the version that was committed.
What existing rows have to fulfil is checked by the engine that the caller hands in.
"""
