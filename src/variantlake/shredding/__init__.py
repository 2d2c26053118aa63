"""Choose which paths of a Variant column become typed columns; shred and unshred in plain Python.

In: DDL text, or a sample for `inference`. Out: a shredding schema and its Arrow type. Shredding and
unshredding work row by row here (for the older layout in `legacy`): they are the references that
the kernels must equal.
"""
