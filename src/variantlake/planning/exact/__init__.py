"""Decide when a physical column gives exactly what Spark gives, and how to read each path.

In: the requested type, and what is known about the path in each file: its column, its residuals.
Out: a reading of each path: its column, with a cast or without, as NULL, or natively; the casts
that keep the order of bounds; the range of a column that a condition on the cast value implies.
What is not known to be exact is read natively.
"""
