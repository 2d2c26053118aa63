"""Contracts: a part of JSON Schema that documents are checked against while they are loaded.

In: a schema, and the tape of a batch of documents. Out: the rows that break it, and why. A table
keeps its contract as a property of the column, with a version.
"""
