"""Read, check and inspect Parquet files with Variant columns.

In: a file or a file-like object. Out: Arrow tables and batches, of whole Variants or single paths;
the rules that a file breaks; a description of its columns.
"""
