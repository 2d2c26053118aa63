"""What Catalyst's plans say about a query: Spark's own analysis of it, seen from Python.

In: a query's plan, parsed or analysed by Spark's JVM; classic sessions show one, Connect does not.
Out: which paths and columns of each table it reads and where its text names them, the conditions,
LIMITs and joined values that may skip files, the aggregates that our tasks can begin.
Nothing is run or rewritten here. Nodes of a plan that we do not know say nothing.
"""
