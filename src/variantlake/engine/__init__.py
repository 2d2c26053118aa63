"""Run queries without Spark: aggregates, order and expressions over a scan, with Arrow.

In: a SELECT of one table as text, a snapshot. Out: Arrow batches with exactly the rows that Spark
returns, from the log alone if that is certain, else from typed columns.
What is not provably Spark's answer is refused by name, before or while it runs.
"""
