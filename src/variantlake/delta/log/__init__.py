"""Reading the log: which files make up a version, reconciled into a snapshot.

In: `_delta_log`, of which nothing is assumed. Out: a `Snapshot`, its files as an Arrow table,
their deletion vectors, and the version that a table had at a time.
"""
