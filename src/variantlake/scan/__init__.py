"""Running a scan plan in this process, with Arrow.

In: a plan. Out: Arrow batches that hold exactly what Spark's `variant_get` gives.
Tasks of other engines read files by the same modules.
"""
