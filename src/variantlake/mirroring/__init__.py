"""Typed mirrors: ordinary Delta tables of chosen paths of a table, kept up to date from its log.

In: a table, columns and paths, a target. Out: one commit to the target, with the rows and the
version of the table that they follow.
"""
