"""Keeping a table in shape: what rewrites, removes or brings back files, and what says it is due.

In: a snapshot and what is wanted. Out: a plan that a dry run shows, and commits that change no row.
Nothing here starts Spark: its tasks call the same functions.
"""
