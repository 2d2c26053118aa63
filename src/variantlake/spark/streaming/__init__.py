"""Structured Streaming: a table as the sink and as the source of a stream.

In: micro-batches of a stream, or offsets of one that reads a table. Out: commits that carry a batch
and its number, never twice; rows by version, through `spark.readStream.format("variantlake")`.
"""
