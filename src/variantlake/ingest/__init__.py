"""Load JSON documents, Arrow data and Parquet files into a table.

In: sources, options, a target. Out: one commit, or nothing.
This package plans and commits a load; threads or Spark's executors run its tasks.
"""
