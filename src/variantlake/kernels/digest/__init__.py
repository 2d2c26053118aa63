"""Hashes of rows that depend on their values alone: not on layout, order of fields, or files.

In: tapes of Variants, the buffers of Arrow columns, plain bytes. Out: a sum in 64 bits for each
row, to which every value adds; hashes of bytes.
"""
