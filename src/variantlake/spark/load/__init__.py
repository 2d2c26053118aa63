"""Loads and conversions as Spark jobs: executors write the files, the driver commits once.

In: sources or a DataFrame. Out: the result of a load. Also what a table demands of new rows in
SQL: defaults, generated columns, constraints.
"""
