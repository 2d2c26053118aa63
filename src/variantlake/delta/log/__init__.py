"""Read the log, and reconcile its actions into the snapshot of a version.

In: `_delta_log`, whose contents are not trusted. Out: a `Snapshot` with its files as an Arrow
table, their deletion vectors, and the version that a table had at a given time.
"""
