"""Contracts: loads check documents against a subset of JSON Schema.

In: a schema, and the tape of a batch of documents. Out: the rows that break it, and why. A table
keeps each column's contract as a table property, with a version.
"""
