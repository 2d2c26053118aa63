"""Work on several cores of this machine: threads that read ahead, and worker processes.

In: a function and its items. Out: its results, in the order of the items.
"""
