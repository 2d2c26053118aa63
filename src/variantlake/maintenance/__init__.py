"""Maintain tables: rewrite, remove and restore files, and report when that is due.

In: a snapshot and the wanted operation. Out: a plan that a dry run shows, and commits. Nothing
here starts Spark; Spark tasks call the same functions.
"""
