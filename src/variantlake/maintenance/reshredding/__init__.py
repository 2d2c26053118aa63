"""Compare a table's shredding schema with its data, and shred the table anew.

In: a snapshot. Out: a report on the residuals; a new shredding schema, and the files that gain by
it, rewritten; or a table without shredded files.
"""
