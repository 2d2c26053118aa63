"""Write Parquet files whose Variant columns every reader recognises.

In: Arrow tables and batches, shredded or to be shredded. Out: a closed file with page index,
statistics and annotation, and the facts for the Delta log.
"""
