"""Loads and conversions as Spark jobs: executors write the files, the driver commits once.

In: sources or a DataFrame. Out: the result of a load. Spark also evaluates a table's SQL for new
rows: defaults, generated columns, constraints.
"""
