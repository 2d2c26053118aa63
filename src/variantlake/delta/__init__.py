"""The Delta table: its log read and written, its schema, its statistics, our tags.

In: a location. Out: snapshots, which never change, and commits, each all or nothing.
From the ground up: actions, schema, protocol, stats, log, checkpoint, transaction.
"""
