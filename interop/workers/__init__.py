"""The workers: each runs in its engine's own environment.

So they import nothing of ours but modules of this package that need Python's library alone.
"""
