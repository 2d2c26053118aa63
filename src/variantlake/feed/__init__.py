"""Read the change data feed: the rows that versions of a table inserted, deleted and updated.

In: a snapshot and a range of versions. Out: snapshots of the changed files, with the change of each
row, which any scan can read; and such a scan for this process.
"""
