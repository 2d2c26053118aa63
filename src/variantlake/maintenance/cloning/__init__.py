"""Clone a table: make another table that names, or copies, the files of one version.

In: a snapshot and a location. Out: one commit there, with the operation `CLONE` as Delta Spark
writes it. The source does not change.
"""
