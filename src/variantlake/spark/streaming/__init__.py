"""Structured Streaming: a table as the sink and as the source of a stream.

In: micro-batches of a stream, or offsets of a stream that reads a table. Out: one commit for each
batch, with the batch's number; rows by version, through `spark.readStream.format("variantlake")`.
"""
