"""Expressions over the columns and paths of a table: one tree, its types, and what evaluates it.

In: text of a query, a plan of Spark, Python. Out: for rows their values, for files the truth values
that a condition may take there. What is not provably Spark's meaning is refused by name.
"""
