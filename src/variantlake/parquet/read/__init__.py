"""Reading, checking and inspecting Parquet files with Variant columns.

In: a file or a file-like object. Out: Arrow tables and batches, whole Variants or single paths;
the rules that a file breaks; what its columns look like.
"""
