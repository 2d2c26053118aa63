"""Learn shredding schemas from a table's rows, and again if recent files drift from them.

In: the target table of a load. Out: the same table, with the shredding schema for its new files.
"""
