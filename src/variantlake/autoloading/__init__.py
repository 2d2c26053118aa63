"""Continuous loading: what is new in a folder or bucket goes into a table, each file once.

In: a source, a table, and what the table's own log says was loaded. Out: batches, each one commit
with the rows of some files and the names of these files.
"""
