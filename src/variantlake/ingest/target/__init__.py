"""The table that a load goes to: its version, its files, what becomes of bad rows.

In: Arrow columns. Out: closed Parquet files with their facts, quarantine files.
"""
