"""Spark's casts: which a query may write, which keep an order, and what each gives for a value.

In: types and values of expressions. Out: casted values, bounds of casted values, or a refusal.
"""
