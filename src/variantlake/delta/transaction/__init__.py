"""Changing a table: commits, their conflicts, and what follows them.

In: a snapshot and new actions. Out: the version that was committed, or an error that says who won.
Changes of properties, columns and statistics are commits as well.
"""
