"""What is known of a file without reading its rows: counts, bounds, facts.

In: footers, and the rows that pass a writer. Out: facts of one file, or of many as columns.
A bound that is not understood in full is not a bound.
"""
