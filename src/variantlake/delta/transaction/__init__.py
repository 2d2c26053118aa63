"""Changing a table: commits, their conflicts, and what follows them.

In: a snapshot and new actions. Out: the committed version, or an error that names the conflict.
Changes of properties, columns and statistics are commits as well.
"""
