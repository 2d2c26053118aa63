"""Let other engines read tables, and push their columns and conditions into a scan.

In: a scan, and the columns and conditions of an engine's query. Out: the columns and rows, from the
files that may hold them. Each engine is optional, and loaded on first use.
"""
