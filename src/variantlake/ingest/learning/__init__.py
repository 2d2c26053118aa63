"""Schemas learned from a table's own rows, and learned again where recent files drift from them.

In: a table that a load goes to. Out: the same table, with the shredding schema of its new files.
"""
