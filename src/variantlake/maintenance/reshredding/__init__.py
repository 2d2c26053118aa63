"""Which paths of a table's Variants are columns, and whether they still should be.

In: a snapshot. Out: a report of what lies in residuals; a new shredding schema; the files that gain
by it, rewritten; a table without shredded files, and without the feature.
"""
