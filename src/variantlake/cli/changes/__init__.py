"""Commands that change rows, or show changed rows.

In: a table, and a condition, rows or versions. Out: the changes, or counts, as text or JSON.
"""
