"""Hash rows by their values alone: layout, order of fields and files make no difference.

In: tapes of Variants, the buffers of Arrow columns, plain bytes. Out: a sum in 64 bits for each
row, to which every value adds; hashes of bytes.
"""
