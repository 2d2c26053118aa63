"""Which paths of a Variant column become typed columns, in plain Python.

In: DDL text, or what `inference` makes of a sample. Out: a shredding schema and the Arrow type it
leads to. Shredding and unshredding stand here too, in `legacy` for the older layout, row by row:
they are the plain twins that the kernels must equal.
"""
