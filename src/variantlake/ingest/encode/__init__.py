"""Encode documents and Arrow data as the columns of a table's files.

In: blocks of documents, Arrow batches. Out: Arrow columns with shredded Variants, and the partition
of each row; bad documents as errors with their place.
"""
