"""Jobs: an input in parts, and tasks that write files of a table from them.

In: a body for one task, and where its files go. Out: what each task wrote, in the input's order.
Loads, rewrites and changes of rows all run as jobs, in threads here or on Spark's executors.
"""
