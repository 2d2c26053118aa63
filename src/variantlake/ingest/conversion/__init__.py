"""Convert Parquet files into a table: add them in place, copy them, or rewrite them.

In: files, globs or folders, and a request. Out: one commit, or the plan of a dry run. `plan` plans
a conversion, threads or Spark's executors run its tasks, and `convert` commits it.
"""
