"""Commands that look at a table, a file or the log.

In: a location. Out: what is there, as text or JSON. `analyze` alone writes.
"""
