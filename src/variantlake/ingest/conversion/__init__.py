"""Converting Parquet files into a table: added where they lie, copied, or rewritten.

In: files, globs or folders, and a request. Out: one commit, or nothing; a dry run says which.
Planned in `plan`, run task by task by threads or Spark's executors, committed in `convert`.
"""
