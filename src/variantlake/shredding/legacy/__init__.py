"""Spark's older shredding layout, in plain Python.

In: a shredding schema, or a column of the older layout. Out: its Arrow type, a column of the final
layout in the older form, and the Variants of the rows.
"""
