"""Commands that show or describe a table, a file or the log.

In: a location. Out: a description, as text or JSON.
"""
