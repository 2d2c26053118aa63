"""Schemas learned from a table's own rows, and learned again if recent files drift from them.

In: a table that a load goes to. Out: the same table, with the shredding schema of its new files.
"""
