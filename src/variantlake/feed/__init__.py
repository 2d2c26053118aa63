"""Reading the change data feed: which rows the versions of a table brought, took and changed.

In: a snapshot and a range of versions. Out: files with what each of their rows is, as snapshots of
their own that any scan reads, and such a scan for this process.
"""
