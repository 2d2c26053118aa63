"""Print the output of commands, and start their sessions.

In: values, rows, counts. Out: tables, JSON lines and notes, in which data is always escaped.
"""
