"""Shred a tape into columns, and rebuild Variants from shredded columns.

In: a tape and a shredding schema; or the columns of a file in the final or the older layout.
Out: Arrow buffers of `value` and `typed_value`; or `metadata` and `value` binaries.
"""
