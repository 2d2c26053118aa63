"""MERGE in this process: which rows of a source match which of the table, and what becomes of them.

In: a snapshot, Arrow rows, a condition and WHEN clauses. Out: one change of rows. Bounds of the
source's keys find files, the key columns alone find rows.
"""
