"""Writing a table: its files, their order and limits, bad rows, and the commit of all of it.

In: Arrow columns of one partition. Out: closed Parquet files with their facts, quarantine files,
one commit.
"""
