"""Variant bytes to a tape, a tape to Variant bytes, and what is asked of both.

In: `metadata` and `value` binaries, of which nothing is assumed. Out: a tape; binaries; a profile
of the paths that documents have, which inference reads.
"""
