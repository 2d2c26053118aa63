"""The bulk of a Delta log and of Parquet footers.

In: statistics and footers as text and bytes, which nobody has checked.
Out: columns of numbers and spans, a row a file or a column chunk.
"""
