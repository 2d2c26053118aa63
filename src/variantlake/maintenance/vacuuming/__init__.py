"""Vacuum: finding the files that no version needs, by listing or by the log, and deleting them.

In: a snapshot and a retention. Out: what would go, or two commits of the history and fewer files.
"""
