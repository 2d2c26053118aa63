"""Read Variant bytes into a tape, write them from a tape, check them, edit and profile them.

In: `metadata` and `value` binaries, which may hold any bytes. Out: a tape; binaries; for inference,
a profile of the paths in the documents.
"""
