"""Typed mirrors: ordinary Delta tables of chosen paths of a table, kept up to date from its log.

In: a table, columns and paths, a target. Out: one commit of the target, which has the rows and how
far they follow the table.
"""
