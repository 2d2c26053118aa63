"""Commands that load and convert data.

In: sources and a table. Out: one commit, with a display of progress.
"""
