"""Access files on local disks and in object stores through one small interface.

In: a path or a URI, and storage options. Out: bytes, listings, conditional puts, and open files
that serve range reads. Every other package reads and writes files through this one.
"""
