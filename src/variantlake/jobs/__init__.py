"""Jobs: tasks that each write a table's files from a part of the input.

In: a body for one task, and where its files go. Out: the tasks' results, in the input's order.
Loads, rewrites and changes of rows all run as jobs, in threads here or on Spark's executors.
"""
