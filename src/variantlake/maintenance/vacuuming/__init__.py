"""Vacuum: find the files that no version needs, by listing or by the log, and delete them.

In: a snapshot and a retention. Out: the files that would go, or two commits and fewer files.
"""
