"""Documents and Arrow data as the columns that a table's files store.

In: blocks of documents, Arrow batches. Out: Arrow columns, Variants shredded, with the partition
of each row; bad documents as errors that say where they are.
"""
