"""What the statistics of files prove, for many files at once.

In: files as columns with their bounds and counts, a predicate, an order, aggregates.
Out: the files that hold no wanted row, those that a LIMIT does not need, the aggregates that the
log alone answers, how far sums can go. Each is a proof: only `planning.exact` translates bounds.
What is unknown proves nothing, and so keeps the file.
"""
