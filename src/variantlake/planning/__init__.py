"""What to read: predicates on paths, and the scan plan.

In: a snapshot's files with their statistics, the wanted paths, conditions.
Out: a plan that says which files are read, and for each group of them how each path is read.
`exact` knows when a stored value is Spark's, and `stats` what the statistics of files prove.
No file is read here; unknown always means: keep the file, read natively.
"""
