"""DELETE, UPDATE and MERGE with Spark's conditions and expressions, over rows with their places.

In: a statement, or its parts. Out: one commit, and the counts that Delta Spark returns.
Spark finds rows and computes new ones in one job, whose tasks write the new files themselves.
`variantlake.dml` decides on the old files, as it does without Spark.
"""
