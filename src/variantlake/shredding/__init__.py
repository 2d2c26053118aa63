"""Which paths of a Variant column become typed columns, in plain Python.

In: a profile of a sample, or DDL text. Out: a shredding schema and the Arrow type it leads to.
Shredding and unshredding stand here too, in `legacy` for the older layout, row by row:
they are the plain twins that the kernels must equal.
"""
