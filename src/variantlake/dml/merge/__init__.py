"""MERGE in this process: match rows of a source with rows of the table, and change the table.

In: a snapshot, Arrow rows, a condition and WHEN clauses. Out: one change of rows. It skips files by
bounds of the source's keys, and finds rows by reading only the columns of keys and conditions.
"""
