"""Upkeep as Spark jobs: executors rewrite files, the driver commits once a step.

In: a table and what is wanted. Out: what was done. The tasks call the functions of `maintenance`,
and no row passes through the JVM.
"""
