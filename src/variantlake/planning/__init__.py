"""Plan what to read: which files, and how to read each path.

In: a snapshot's files with their statistics, the wanted paths, conditions.
Out: a plan with the files to read, and for each group of them how to read each path.
`exact` decides when a stored value is Spark's, and `stats` what the statistics of files prove.
Planning reads no file; unknown always means: keep the file, read natively.
"""
