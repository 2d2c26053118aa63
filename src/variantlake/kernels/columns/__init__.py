"""Columns of a query as codes: rows that are alike, and what stands in a dictionary's pages."""
