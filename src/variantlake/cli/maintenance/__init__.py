"""Commands for the maintenance of a table.

In: a table and options, such as `--dry-run`. Out: a report of the work, as text or JSON.
"""
