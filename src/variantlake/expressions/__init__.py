"""Expressions over a table's columns and paths: one tree, its types and its evaluators.

In: a query's text, a Spark plan, Python. Out: values for rows, and for each file the truth values
that a condition may take in it. Expressions not provably evaluated as in Spark are refused by name.
"""
