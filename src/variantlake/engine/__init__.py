"""Queries run in this process: aggregates, order and expressions over a scan, with Arrow.

In: a SELECT of one table as text, a snapshot. Out: Arrow batches that hold exactly what Spark
gives, from the log alone if that is certain, else from typed columns.
What is not provably Spark's answer is refused by name, before or while it runs.
"""
