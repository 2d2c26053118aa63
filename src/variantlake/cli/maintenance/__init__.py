"""Commands that keep a table in shape.

In: a table and what to do, or `--dry-run` to be told. Out: what was done, as text or JSON.
"""
