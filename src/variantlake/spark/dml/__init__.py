"""Changing rows with Spark: its own conditions and expressions over rows that know their places.

In: a statement, or its parts. Out: one commit, and the counts that Spark's statement gives.
Spark finds rows and computes new ones in one job, whose tasks write the new files themselves; what
becomes of the old files is decided by `variantlake.dml`, as without Spark.
"""
