"""Commands about rows that change.

In: a table, and which rows or versions. Out: the changes, or what was changed, as text or JSON.
"""
