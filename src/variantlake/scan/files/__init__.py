"""Read the rows of data files, a row group at a time: paths from their columns, whole values.

In: an open file, columns and a condition. Out: Arrow columns of the rows that fulfil it.
"""
