"""Many Variant values at once, as machine code. Each kernel equals a plain twin elsewhere.

In: NumPy and Arrow buffers. Out: buffers that the caller allocated, a status and a position a row.
A kernel allocates nothing and never raises; the Python around it allocates and words the errors.
"""
