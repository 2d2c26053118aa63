"""Where tables and sources lie: local disks and object stores, behind a few calls.

In: a path or a URI, and storage options. Out: bytes, listings, conditional puts, and open files
that are read by ranges. All that reads or writes a file does it through here.
"""
