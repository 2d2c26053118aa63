"""Cluster a table: order its rows across files by its clustering paths.

In: a snapshot and a budget of bytes. Out: the files whose bounds in the log overlap most, rewritten
as files that do not overlap.
"""
