"""Rows as files of other forms, and as text: Parquet, CSV, JSON lines.

Values are written as Spark writes them. Nothing here knows tables.
"""
