"""Reads Catalyst's plans: Spark's own analysis of a query, seen from Python.

In: a query's plan, parsed or analysed by Spark's JVM. Classic sessions show one, Connect does not.
Out: the paths and columns that the query reads of each table and their places in its text, the
conditions, LIMITs and join values that may skip files, the aggregates that our tasks can begin.
This package runs only the query for join values, and rewrites nothing. It ignores unknown nodes.
"""
