"""What commands print, and the sessions that they start.

In: values, rows, counts. Out: tables, JSON lines and notes, with nothing raw of the data's.
"""
