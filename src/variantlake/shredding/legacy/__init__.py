"""Spark's older shredding layout, in plain Python.

In: a shredding schema, Variants, or a column of the older layout. Out: its Arrow type, a column in
that layout, or the Variants of the rows.
"""
