"""Analyses and plans a user's query, and rewrites it where that makes it faster.

In: SQL text. Out: a DataFrame with the same answer. In a classic session Catalyst analyses the
query (`plans`). Spark Connect shows no plan, so this package analyses the text.
"""
