"""Read the bulk of a Delta log and of Parquet footers.

In: statistics and footers as unchecked text and bytes.
Out: columns of numbers and spans, with a row for each file or column chunk.
"""
