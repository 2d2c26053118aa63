"""The functions that expressions may call.

In: sqlglot's trees, and the values of arguments in many rows. Out: typed calls of the tree with
Spark's implicit casts, and their values as Spark computes them.
"""
