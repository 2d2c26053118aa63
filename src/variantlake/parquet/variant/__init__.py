"""The Variant group in a file's schema, and Variant columns in Arrow.

In: a schema tree; Arrow arrays as a file's reader gives them.
Out: where each part of a shredded Variant is stored; struct<metadata, value> and the way back.
"""
