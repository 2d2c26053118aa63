"""Find Variant groups in a file's schema, and convert their columns to and from Arrow.

In: a schema tree; the Arrow arrays of a file's columns.
Out: the place of each part of a shredded Variant; struct<metadata, value>.
"""
