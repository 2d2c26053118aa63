"""What to read: predicates on paths, file skipping, exact conversions, and the scan plan.

In: a snapshot's files with their statistics, the wanted paths, conditions.
Out: a plan that says which files are read, and for each group of them how each path is read.
No file is read here; unknown always means: keep the file, read natively.
"""
