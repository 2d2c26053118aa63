"""Loading data: JSON documents, Arrow data, Parquet files into a table.

In: sources, options, a target. Out: one commit, or nothing.
A load is planned here, run by threads or Spark's executors, and committed here.
"""
