"""A tape to shredded columns, and shredded columns back to Variants.

In: a tape and a shredding schema; or the columns of a file in the final or the older layout.
Out: Arrow buffers of `value` and `typed_value`; or `metadata` and `value` binaries.
"""
