"""Changing rows: which rows of which files, deletion vectors, files rewritten, one commit.

In: a snapshot, a condition or rows that a caller found, and new rows. Out: a commit that takes
rows away and adds others, decided row by row, and what it did.
Nothing here starts Spark: what finds rows with it calls the same functions.
"""
