"""Write a table's files, sort and limit them, set bad rows aside, and commit.

In: Arrow columns of one partition. Out: closed Parquet files with their facts, quarantine files,
one commit.
"""
