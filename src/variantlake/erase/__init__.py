"""Erasing rows for good: out of the table, then out of its folder and its log.

In: the newest version and a condition. Out: a commit after which no file of the table holds the
rows, and when, or at once, nothing below the table's folder does.
"""
