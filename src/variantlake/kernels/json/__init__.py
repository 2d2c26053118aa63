"""JSON text to a tape, and a tape to JSON text.

In: bytes from outside, of which nothing is assumed. Out: a tape, or text in Spark's form of JSON.
Numbers, strings and lines have a module each.
"""
